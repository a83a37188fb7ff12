package rootpvc

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// reporter reports on the claims that concern one member.
type reporter struct {
	link *member.Link
	*pace
}

// newReporter returns the reporter of a member's link.
func newReporter(link *member.Link) *reporter { return &reporter{link, newPace()} }

// Problem reports a problem to the user: in the claim's condition if this member owns it,
// or else with an event.
func (r *reporter) Problem(ctx context.Context, o observe.Claim, problem *mirror.Refusal) error {
	if o.Reports(r.link.Member) {
		return r.SetPlaced(ctx, o.Root, problem)
	}
	if problem != nil {
		r.emitProblem(o, problem)
	}
	return nil
}

// emitProblem emits the event of a problem on the root or, if it is gone, on a host PV that
// keeps its leaf claim. If neither exists, the registration's inventory lists the volume.
func (r *reporter) emitProblem(o observe.Claim, problem *mirror.Refusal) {
	switch {
	case o.Root != nil:
		r.EventProblem(o.Root, problem)
	case len(o.Observed.Earlier) > 0:
		r.EventProblem(&o.Observed.Earlier[0], problem)
	}
}

// SetPlaced sets the root's Placed condition if there is a problem, with an event if the
// problem is new, and removes it otherwise.
func (r *reporter) SetPlaced(ctx context.Context, root *corev1.PersistentVolumeClaim, problem *mirror.Refusal) error {
	if root == nil {
		return nil
	}
	if problem != nil && report.FailsClaim(problem.Reason) {
		problem = report.TriedOf(root).AfterOthers(problem, r.link.Member)
	}
	shown := report.PlacedCondition(root, mirror.Reporter{ClusterID: r.link.ClusterID}, problem, r.link.Clock.Now())
	if shown == nil {
		return nil
	}
	if problem != nil && report.Paced(problem.Reason) && !r.spend(root.UID, r.link.Clock.Now()) {
		return nil // the problem is reported later
	}
	if problem != nil {
		r.EventProblem(root, problem)
	}
	return r.link.Root.ApplyStatus(ctx, actor, root, shown)
}

// RefusedByMember reports why the member's API server rejects a claim (a quota, an admission
// policy), and retries at a limited rate.
func (r *reporter) RefusedByMember(ctx context.Context, root *corev1.PersistentVolumeClaim, doing string, err error) error {
	problem := report.RefusedByMember(r.link.Registration, doing, "the claim", err)
	if problem == nil {
		return err
	}
	if failed := r.SetPlaced(ctx, root, problem); failed != nil {
		return failed
	}
	return err
}

// SetPlacedOfLeaving sets the Placed condition of a claim for a member that is being deregistered, or removes it if
// problem is nil. By then, the member's root_pvc has stopped or cannot reach the member. When the cluster
// is registered again, its root_pvc owns the condition.
func SetPlacedOfLeaving(ctx context.Context, host *guarded.Root, claim *corev1.PersistentVolumeClaim, clusterID string, problem *mirror.Refusal, now time.Time) error {
	shown := report.PlacedCondition(claim, mirror.Reporter{ClusterID: clusterID}, problem, now)
	if shown == nil {
		return nil
	}
	return host.ApplyStatus(ctx, actor, claim, shown)
}
