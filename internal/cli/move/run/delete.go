package run

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/move/host"
	"github.com/xylem-io/xylem/internal/cli/move/plan"
	"github.com/xylem-io/xylem/internal/cli/move/record"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/text"
)

// DeleteOld makes Xylem destroy the disks that earlier moves of a claim kept.
func DeleteOld(ctx context.Context, h *host.Client, opts Options, claim string) error {
	store := record.NewStore(h, claim)
	stored, err := store.Read(ctx)
	if err != nil {
		return err
	}
	if stored != nil && stored.Phase != record.Done {
		return fmt.Errorf("the move of claim %q is not finished. Finish it with --to %s, or revert it with --undo", claim, stored.To.Registration)
	}
	left, err := leftBy(ctx, h, claim)
	if err != nil {
		return err
	}
	for i := range left {
		h.Report("Destroy volume %q, an old disk of claim %q", left[i].Name, claim)
	}
	if opts.DryRun != command.DryRunNone {
		return opts.unchanged(h)
	}
	if err := opts.confirm(h, claim, "destroy them"); err != nil {
		return err
	}
	if err := store.Delete(ctx); err != nil { // an undo is impossible without the disks
		return err
	}
	var errs []error
	for i := range left {
		errs = append(errs, unmark(ctx, h, &left[i]))
	}
	return errors.Join(errs...)
}

// leftBy returns the disks that earlier moves of a claim kept, or an error if there are none.
func leftBy(ctx context.Context, h *host.Client, claim string) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	if err := h.List(ctx, &list); err != nil {
		return nil, h.Explain(fmt.Errorf("list PersistentVolumes: %w", err))
	}
	var left []corev1.PersistentVolume
	var bound []string
	for i := range list.Items {
		pv := &list.Items[i]
		switch {
		case pv.Annotations[v1alpha1.AnnotationMoveClaim] != record.MovedClaim(h.Namespace, claim):
		case pv.Status.Phase == corev1.VolumeBound:
			bound = append(bound, pv.Name)
		default:
			left = append(left, *pv)
		}
	}
	if len(left) == 0 && len(bound) > 0 {
		return nil, fmt.Errorf("earlier moves of claim %q kept only volumes that claims use now (%s), so none is destroyed. Remove the annotation %s from each", claim, text.Quoted(bound...), v1alpha1.AnnotationMoveClaim)
	}
	if len(left) == 0 {
		return nil, plan.NothingToDo{Err: fmt.Errorf("no earlier move of claim %q in namespace %q left a disk", claim, h.Namespace)}
	}
	return left, nil
}

// unmark restores the reclaim policy that a volume had before the move. If it is Delete, Xylem
// destroys the disk. Otherwise, the disk is kept, like any with this policy.
func unmark(ctx context.Context, h *host.Client, pv *corev1.PersistentVolume) error {
	policy := corev1.PersistentVolumeReclaimPolicy(pv.Annotations[v1alpha1.AnnotationMovePolicy])
	after := pv.DeepCopy()
	for key := range record.NoMarks() {
		delete(after.Annotations, key)
	}
	after.Spec.PersistentVolumeReclaimPolicy = policy
	err := h.Patch(ctx, after, client.MergeFromWithOptions(pv, client.MergeFromWithOptimisticLock{}), command.FieldOwner)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return h.Explain(fmt.Errorf("set volume %q to policy %s: %w", pv.Name, policy, err))
	case policy != corev1.PersistentVolumeReclaimDelete:
		h.Report("Volume %q is kept: its policy was %s before the move. Delete it like any other volume with this policy", pv.Name, policy)
		return nil
	}
	return h.Await(ctx, fmt.Sprintf("volume %q to be destroyed", pv.Name), func(ctx context.Context) (string, error) {
		now, err := index.Find[corev1.PersistentVolume](ctx, h, client.ObjectKeyFromObject(pv))
		if err != nil {
			return "", h.Explain(err)
		}
		if now == nil || now.UID != pv.UID {
			h.Report("Destroyed volume %q", pv.Name)
			return "", nil
		}
		return "Xylem destroys its disk in the member", nil
	})
}
