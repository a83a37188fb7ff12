package rootpvc

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// report reports the plan's problem to the user. If that needs a live read, it does so first.
func (r *reconciler) report(ctx context.Context, o observe.Claim, plan lifecycle.Plan) error {
	switch {
	case plan.Report == nil:
	case plan.Phase == lifecycle.Unconfirmed: // the cache may only lack the placement
		if _, same, err := r.Proof().RootUnchanged(ctx, o.Root); err != nil || !same {
			return err
		}
	case plan.Phase == lifecycle.InUse:
		if used, err := r.inUse(ctx, o); err != nil || !used {
			return err
		}
	}
	return r.reportProblem(ctx, o, plan.Report)
}

// inUse reports whether another claim of the member uses the claim's volume. If there is no
// such claim, the member is about to release the volume.
func (r *reconciler) inUse(ctx context.Context, o observe.Claim) (bool, error) {
	ref := o.Observed.Leaf.Spec.ClaimRef
	other, err := index.Find[corev1.PersistentVolumeClaim](ctx, r.Live, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	return other != nil && other.UID == ref.UID, err
}

// reportProblem reports a problem to the user: in the claim's condition if this member owns it,
// or else with an event.
func (r *reconciler) reportProblem(ctx context.Context, o observe.Claim, problem *mirror.Refusal) error {
	if o.Reports(r.Member) {
		return r.setPlaced(ctx, o.Root, problem)
	}
	if problem != nil {
		r.emitProblem(o, problem)
	}
	return nil
}

// emitProblem emits the event of a problem on the root or, if it is gone, on a host PV that
// keeps its leaf claim. If neither exists, the registration's account has the volume.
func (r *reconciler) emitProblem(o observe.Claim, problem *mirror.Refusal) {
	switch {
	case o.Root != nil:
		r.eventProblem(o.Root, problem)
	case len(o.Observed.Earlier) > 0:
		r.eventProblem(&o.Observed.Earlier[0], problem)
	}
}

// setPlaced sets the root's Placed condition if there is a problem, with an event if the
// problem is new, and removes it otherwise.
func (r *reconciler) setPlaced(ctx context.Context, root *corev1.PersistentVolumeClaim, problem *mirror.Refusal) error {
	if root == nil {
		return nil
	}
	if problem != nil && report.FailsClaim(problem.Reason) {
		problem = report.TriedOf(root).AfterOthers(problem, r.Member)
	}
	shown := report.PlacedCondition(root, mirror.Reporter{ClusterID: r.ClusterID}, problem, r.Clock.Now())
	if shown == nil {
		return nil
	}
	if problem != nil && report.FailsClaim(problem.Reason) && !r.pace.spend(root.UID, r.Clock.Now()) {
		return nil // reported a little later
	}
	if problem != nil {
		r.eventProblem(root, problem)
	}
	return r.Root.ApplyStatus(ctx, actor, root, shown)
}
