package move

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/text"
)

// back switches a claim back to its old disk.
func (o *options) back(ctx context.Context, name string) error {
	r := o.newRun(name)
	stored, err := r.book.read(ctx)
	if err != nil {
		return o.explain(err)
	}
	if stored == nil {
		return nothing{fmt.Errorf("no move of claim %q is recorded in namespace %q, so there is nothing to undo", name, o.namespace)}
	}
	r.record = stored
	if _, err := r.volume(ctx, r.Old); err != nil {
		return err
	}
	if r.Used { // otherwise, the claim still has its old disk, and Pods can use it
		if err := r.unused(ctx, r.ID, name); err != nil {
			return err
		}
	}
	r.say("Undo the move of claim %q to member %q: switch the claim back to volume %q in member %q", name, r.To.Registration, r.Old.Name, r.From.Registration)
	if r.Used {
		r.say("The copy, volume %q, is kept, because Pods may have written to it", r.New.Name)
	} else {
		r.say("The copy is destroyed")
	}
	if o.dry != command.DryRunNone {
		return o.unchanged()
	}
	if err := o.confirm(name, "undo the move"); err != nil {
		return err
	}
	if err := r.undo(ctx); err != nil {
		return fmt.Errorf("%w\nThis command has written nothing to the disk in member %q. Run it again to continue", r.cause(ctx, err), r.From.Registration)
	}
	paint := r.env.PaintOf(r.env.Out)
	r.say("%s: claim %q has its data in member %q", paint.Good("Undone"), name, r.From.Registration)
	return nil
}

func (r *run) undo(ctx context.Context) error {
	r.Run = r.thisID
	if err := r.enter(ctx, undoing); err != nil {
		return err
	}
	if err := r.restore(ctx); err != nil {
		return err
	}
	if err := r.setVolume(ctx, r.Old, r.Old.Policy, unmarked()); err != nil {
		return err
	}
	switch pv, err := r.copyVolume(ctx); {
	case err != nil:
		return err
	case pv == nil: // no copy, or somebody deleted it
	case r.Used:
		if err := r.setVolume(ctx, r.New, corev1.PersistentVolumeReclaimRetain, r.marks(r.New)); err != nil {
			return err
		}
	default:
		if err := r.setVolume(ctx, r.New, r.New.Policy, nil); err != nil {
			return err
		}
	}
	if err := r.removeClaims(ctx, ""); err != nil {
		return err
	}
	return r.explain(r.book.remove(ctx))
}

// copyVolume returns the volume of the copy, or nil.
func (r *run) copyVolume(ctx context.Context) (*corev1.PersistentVolume, error) {
	pv, err := index.Find[corev1.PersistentVolume](ctx, r.host, client.ObjectKey{Name: r.New.Name})
	if err != nil {
		return nil, r.explain(err)
	}
	if pv == nil || pv.UID != r.New.UID {
		return nil, nil //nolint:nilnil // no volume, no error
	}
	return pv, nil
}

// restore binds the claim to its old disk, regardless of the move's progress.
func (r *run) restore(ctx context.Context) error {
	if err := r.removePods(ctx); err != nil {
		return err
	}
	claim, err := r.claim(ctx, r.Claim.Name)
	switch {
	case err != nil:
		return err
	case claim == nil:
	case claim.UID == r.ClaimUID && claim.DeletionTimestamp == nil:
		return r.touch(ctx, claim)
	case claim.UID == r.ClaimUID:
		if err := r.gone(ctx, claim.Name, claim.UID); err != nil {
			return err
		}
	case r.Used && isBoundTo(claim, r.record, r.New.Name):
		if err := r.detach(ctx, claim); err != nil {
			return err
		}
	}
	r.say("Creating claim %q again, with its old disk", r.Claim.Name)
	uid, err := r.attach(ctx, r.Old)
	if err != nil {
		return err
	}
	r.ClaimUID = uid
	return nil
}

// detach deletes the claim that is bound to the copy, and keeps the copy.
func (r *run) detach(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := r.unused(ctx, r.ID, claim.Name); err != nil {
		return err
	}
	if err := r.setVolume(ctx, r.New, corev1.PersistentVolumeReclaimRetain, r.marks(r.New)); err != nil {
		return err
	}
	if err := r.deleteClaim(ctx, claim); err != nil {
		return err
	}
	return r.gone(ctx, claim.Name, claim.UID)
}

// touch changes the claim, so that a delayed deletion by an earlier run fails.
func (r *run) touch(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before, err := r.claim(ctx, claim.Name)
		switch {
		case err != nil:
			return err
		case before == nil || before.UID != claim.UID || before.DeletionTimestamp != nil:
			return fmt.Errorf("claim %q was deleted by somebody else", claim.Name)
		}
		after := before.DeepCopy()
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationMoveRun, r.Run)
		if err := r.host.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), command.FieldOwner); err != nil {
			return r.explain(fmt.Errorf("annotate claim %q: %w", claim.Name, err))
		}
		return nil
	})
}

// destroy makes Xylem destroy the disks that earlier moves of a claim kept.
func (o *options) destroy(ctx context.Context, name string) error {
	r := o.newRun(name)
	stored, err := r.book.read(ctx)
	if err != nil {
		return o.explain(err)
	}
	if stored != nil && stored.Phase != done {
		return fmt.Errorf("the move of claim %q is not finished. Finish it with --to %s, or revert it with --undo", name, stored.To.Registration)
	}
	left, err := o.left(ctx, name)
	if err != nil {
		return err
	}
	for i := range left {
		o.say("Destroy volume %q, an old disk of claim %q", left[i].Name, name)
	}
	if o.dry != command.DryRunNone {
		return o.unchanged()
	}
	if err := o.confirm(name, "destroy them"); err != nil {
		return err
	}
	if err := r.book.remove(ctx); err != nil { // an undo is impossible without the disks
		return o.explain(err)
	}
	var errs []error
	for i := range left {
		errs = append(errs, r.end(ctx, &left[i]))
	}
	return errors.Join(errs...)
}

// left returns the disks that earlier moves of a claim kept, or an error if there are none.
func (o *options) left(ctx context.Context, name string) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	if err := o.host.List(ctx, &list); err != nil {
		return nil, o.explain(fmt.Errorf("list PersistentVolumes: %w", err))
	}
	var left []corev1.PersistentVolume
	var bound []string
	for i := range list.Items {
		pv := &list.Items[i]
		switch {
		case pv.Annotations[v1alpha1.AnnotationMoveClaim] != o.namespace+"/"+name:
		case pv.Status.Phase == corev1.VolumeBound:
			bound = append(bound, pv.Name)
		default:
			left = append(left, *pv)
		}
	}
	if len(left) == 0 && len(bound) > 0 {
		return nil, fmt.Errorf("claims use %s %s, which earlier moves kept, so they are not destroyed. Remove the annotation %s from them", text.Plural("volume"), text.Quoted(bound...), v1alpha1.AnnotationMoveClaim)
	}
	if len(left) == 0 {
		return nil, nothing{fmt.Errorf("no earlier move of claim %q in namespace %q left a disk", name, o.namespace)}
	}
	return left, nil
}

// end sets a volume's reclaim policy back to the one before the move. If it is Delete, Xylem
// destroys the disk. Otherwise, the disk is kept, like any with this policy.
func (r *run) end(ctx context.Context, pv *corev1.PersistentVolume) error {
	policy := corev1.PersistentVolumeReclaimPolicy(pv.Annotations[v1alpha1.AnnotationMovePolicy])
	after := pv.DeepCopy()
	for key := range unmarked() {
		delete(after.Annotations, key)
	}
	after.Spec.PersistentVolumeReclaimPolicy = policy
	err := r.host.Patch(ctx, after, client.MergeFromWithOptions(pv, client.MergeFromWithOptimisticLock{}), command.FieldOwner)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return r.explain(fmt.Errorf("set volume %q to policy %s: %w", pv.Name, policy, err))
	case policy != corev1.PersistentVolumeReclaimDelete:
		r.say("Volume %q is kept: its policy was %s before the move. Delete it like any other volume with this policy", pv.Name, policy)
		return nil
	}
	return r.await(ctx, fmt.Sprintf("volume %q to be destroyed", pv.Name), func(ctx context.Context) (string, error) {
		now, err := index.Find[corev1.PersistentVolume](ctx, r.host, client.ObjectKeyFromObject(pv))
		if err != nil {
			return "", r.explain(err)
		}
		if now == nil || now.UID != pv.UID {
			r.say("Destroyed volume %q", pv.Name)
			return "", nil
		}
		return "Xylem destroys its disk in the member", nil
	})
}
