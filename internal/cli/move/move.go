package move

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/index"
)

// run is the move of one claim.
type run struct {
	*options
	*record
	book  book
	shell shell
}

func (o *options) newRun(name string) *run {
	return &run{
		options: o, book: book{host: o.host, namespace: o.namespace, claim: name},
		shell: shell{config: o.host.Config, namespace: o.namespace},
	}
}

// move starts or continues the move of a claim.
func (o *options) move(ctx context.Context, name string) error {
	r := o.newRun(name)
	stored, err := r.book.read(ctx)
	if err != nil {
		return o.explain(err)
	}
	switch {
	case stored != nil && stored.Phase == undoing:
		return fmt.Errorf("the move of claim %q is being undone. Run this command with --undo and without --to to finish the undo, then move the claim again", name)
	case stored != nil && stored.Phase != done && stored.To.Registration != o.to:
		return fmt.Errorf("a move of claim %q to member %q is in progress. Finish it with --to %s, or revert it with --undo", name, stored.To.Registration, stored.To.Registration)
	case stored != nil && stored.Phase != done:
		r.record = stored
	default:
		if moved, err := r.moved(ctx, stored); err != nil || moved {
			return err
		}
		if r.record, err = o.plan(ctx, name); err != nil {
			return err
		}
	}
	r.print()
	if o.dry == command.DryRunClient {
		return o.unchanged()
	}
	if o.dry == command.DryRunServer {
		return r.validate(ctx)
	}
	if err := o.confirm(name, "move it"); err != nil {
		return err
	}
	return r.forward(ctx)
}

func (o *options) registered(ctx context.Context, p place) (*v1alpha1.ClusterRegistration, error) {
	all, err := o.fleet(ctx)
	if err != nil {
		return nil, err
	}
	return all.of(p.ClusterID), nil
}

// moved reports whether an earlier run has already moved the claim to this member.
func (r *run) moved(ctx context.Context, stored *record) (bool, error) {
	if stored == nil || stored.To.Registration != r.to {
		return false, nil
	}
	claim, err := r.claim(ctx, stored.Claim.Name)
	if err != nil || claim == nil || !isBoundTo(claim, stored, stored.New.Name) {
		return false, err
	}
	r.say("Claim %q was already moved to member %q. Its old disk is volume %q", claim.Name, stored.To.Registration, stored.Old.Name)
	return true, nil
}

// print prints the plan.
func (r *run) print() {
	size := r.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	r.say("Move claim %q (%s) from member %q to member %q:", r.Claim.Name, size.String(), r.From.Registration, r.To.Registration)
	if r.Run != "" {
		r.say("  An earlier run stopped at step %s. This run continues", r.Phase)
		return
	}
	r.say("  1. create claim %q, with the same class, in member %q", r.Copy, r.To.Registration)
	r.say("  2. start a Pod for each of the two claims, with image %s, and copy the data", r.image)
	r.say("  3. compare both disks by checksum")
	r.say("  4. set both volumes to policy Retain, delete claim %q, and compare the old disk again while the claim is being deleted", r.Claim.Name)
	r.say("  5. create claim %q again, bound to the copy", r.Claim.Name)
	r.say("The old disk, volume %q, is kept until you run this command with --delete-source", r.Old.Name)
}

// validate lets the host validate the first writes.
func (r *run) validate(ctx context.Context) error {
	r.Run = r.thisID
	old, err := r.volume(ctx, r.Old)
	if err != nil {
		return err
	}
	if err := r.book.write(ctx, r.record, true); err != nil {
		return r.explain(err)
	}
	objects := []client.Object{copyClaim(r.record, old)}
	for _, role := range []string{reads, writes} {
		pod, err := r.podFor(ctx, role)
		if err != nil {
			return err
		}
		objects = append(objects, pod)
	}
	for _, obj := range objects {
		if err := r.host.Create(ctx, obj, command.CreateOptions(true)...); err != nil && !apierrors.IsAlreadyExists(err) {
			return r.explain(fmt.Errorf("create %q: %w", obj.GetName(), err))
		}
	}
	return r.unchanged()
}

// forward runs the remaining steps. Each step starts from the current objects in the host.
func (r *run) forward(ctx context.Context) error {
	r.Run = r.thisID
	if err := r.save(ctx); err != nil {
		return r.cause(ctx, err)
	}
	for r.Phase != done {
		var err error
		switch r.Phase {
		case copying:
			err = r.copyAndCompare(ctx)
		case swapping:
			err = r.seal(ctx)
		case sealed:
			err = r.release(ctx)
		case rebinding:
			err = r.rebind(ctx)
		default:
			err = fmt.Errorf("the record has the unknown step %q. Use the plugin version that began the move", r.Phase)
		}
		if err != nil {
			return fmt.Errorf("%w\nThis command has written nothing to the disk in member %q. Run it again to continue, or with --undo to revert the move", r.cause(ctx, err), r.From.Registration)
		}
	}
	paint := r.env.PaintOf(r.env.Out)
	r.say("%s: claim %q has its data in member %q. The old disk in member %q, volume %q, is kept until you run `kubectl xylem move pvc %s --delete-source -n %s`; --undo reverts to it",
		paint.Good("Moved"), r.Claim.Name, r.To.Registration, r.From.Registration, r.Old.Name, r.Claim.Name, r.namespace)
	return nil
}

// cause returns the error of a step, or an error for an interruption by the user.
func (r *run) cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted at step %s: %w", r.Phase, ctx.Err())
	}
	return err
}

// save writes the record.
func (r *run) save(ctx context.Context) error { return r.explain(r.book.write(ctx, r.record, false)) }

// enter begins the next phase.
func (r *run) enter(ctx context.Context, next phase) error {
	r.Phase = next
	return r.save(ctx)
}

// podFor returns a Pod of this run, which tolerates the taints of the member's virtual node.
func (r *run) podFor(ctx context.Context, role string) (*corev1.Pod, error) {
	node, err := r.node(ctx, r.where(role))
	if err != nil {
		return nil, err
	}
	return mover(r.record, role, r.image, node.Spec.Taints), nil
}

// node returns the virtual node of a member of the move, or an error that explains why no Pod can
// start there.
func (r *run) node(ctx context.Context, where place) (*corev1.Node, error) {
	cr, err := r.registered(ctx, where)
	switch {
	case err != nil:
		return nil, err
	case cr == nil:
		return nil, fmt.Errorf("member %q is no longer registered. Register it again", where.Registration)
	}
	return r.usable(ctx, cr)
}

// volume reads a volume of the move. It must belong to a claim of the namespace: a tenant who can
// write ConfigMaps there could otherwise record a foreign volume that only the user of this command
// can change.
func (r *run) volume(ctx context.Context, d disk) (*corev1.PersistentVolume, error) {
	pv, err := index.Find[corev1.PersistentVolume](ctx, r.host, client.ObjectKey{Name: d.Name})
	switch {
	case err != nil:
		return nil, r.explain(err)
	case pv == nil, pv.UID != d.UID:
		return nil, fmt.Errorf("somebody deleted volume %q in the host. Its disk may still be in the member; `kubectl xylem doctor` lists such disks", d.Name)
	case pv.Spec.ClaimRef == nil, pv.Spec.ClaimRef.Namespace != r.namespace:
		return nil, fmt.Errorf("volume %q does not belong to namespace %q, so the record of the move is wrong: somebody changed the volume's claimRef, or ConfigMap %q. Correct it, or delete the ConfigMap",
			d.Name, r.namespace, recordName(r.book.claim))
	}
	return pv, nil
}

// claim reads a claim of the namespace, or returns nil.
func (r *run) claim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	claim, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.host, client.ObjectKey{Namespace: r.namespace, Name: name})
	if err != nil {
		return nil, r.explain(err)
	}
	return claim, nil
}

// mine fails if another run has taken over. A run calls it between reading an object and writing it
// with a precondition. The run that takes over first writes the record and then the object, so one
// of the two checks fails for the earlier run.
func (r *run) mine(ctx context.Context) error {
	stored, err := index.Find[corev1.ConfigMap](ctx, r.host, client.ObjectKeyFromObject(r.book.stored))
	if err != nil {
		return r.explain(err)
	}
	if stored == nil || stored.ResourceVersion != r.book.stored.ResourceVersion {
		return errTakenOver
	}
	return nil
}

// patchVolume changes a volume unless another run has taken over.
func (r *run) patchVolume(ctx context.Context, d disk, what string, change func(*corev1.PersistentVolume)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // other clients write the status
		before, err := r.volume(ctx, d)
		if err != nil {
			return err
		}
		if err := r.mine(ctx); err != nil {
			return err
		}
		after := before.DeepCopy()
		if change(after); equality.Semantic.DeepEqual(before, after) {
			return nil
		}
		if err := r.host.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), command.FieldOwner); err != nil {
			return r.explain(fmt.Errorf("change volume %q, to %s: %w", d.Name, what, err))
		}
		return nil
	})
}

// setVolume sets the reclaim policy of a volume, and annotations. An empty value removes an
// annotation.
func (r *run) setVolume(ctx context.Context, d disk, policy corev1.PersistentVolumeReclaimPolicy, annotations map[string]string) error {
	return r.patchVolume(ctx, d, "set its policy to "+string(policy), func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = policy
		for key, value := range annotations {
			if value == "" {
				delete(pv.Annotations, key)
			} else {
				metav1.SetMetaDataAnnotation(&pv.ObjectMeta, key, value)
			}
		}
	})
}

// await polls until waiting returns "". If that takes long, it reports the reason that waiting
// returns.
func (r *run) await(ctx context.Context, what string, waiting func(context.Context) (string, error)) error {
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	begin, last, shown := r.env.Clock.Now(), "", ""
	err := wait.PollUntilContextCancel(limited, poll, true, func(ctx context.Context) (bool, error) {
		why, err := waiting(ctx)
		if err != nil {
			return false, err
		}
		if last = why; why != "" && why != shown && r.env.Clock.Since(begin) > quiet {
			shown = why
			fmt.Fprintf(r.env.ErrOut, "waiting for %s: %s\n", what, why)
		}
		return why == "", nil
	})
	if limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("waited %s for %s: %s", r.timeout, what, strings.TrimSuffix(last, "."))
	}
	return err //nolint:wrapcheck // waiting names the object
}

// marks returns the annotations for a disk that is kept after a move.
func (r *run) marks(d disk) map[string]string {
	return map[string]string{
		v1alpha1.LabelMove: r.ID, v1alpha1.AnnotationMoveClaim: r.namespace + "/" + r.Claim.Name, v1alpha1.AnnotationMovePolicy: string(d.Policy),
	}
}

// unmarked returns empty values for the annotations of marks, which remove them.
func unmarked() map[string]string {
	return map[string]string{v1alpha1.LabelMove: "", v1alpha1.AnnotationMoveClaim: "", v1alpha1.AnnotationMovePolicy: ""}
}
