package rootpvc

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// reporter reports on the claims that concern one member.
type reporter struct {
	link *member.Link
	*reportPacer
}

// newReporter returns the reporter of a member's link.
func newReporter(link *member.Link) *reporter { return &reporter{link, newReportPacer()} }

// ReportProblem reports a problem to the user: in the claim's condition if this member owns it,
// or else with an event.
func (r *reporter) ReportProblem(ctx context.Context, o observe.Claim, problem *mirror.Refusal) error {
	if o.PlacedConditionOwnedBy(r.link.Member) {
		return r.SetPlacedCondition(ctx, o.Root, problem)
	}
	if problem != nil {
		r.emitClaimProblem(o, problem)
	}
	return nil
}

// emitClaimProblem emits the event of a problem on the root or, if it is gone, on a host PV that
// keeps its leaf claim. If neither exists, the registration's inventory lists the volume.
func (r *reporter) emitClaimProblem(o observe.Claim, problem *mirror.Refusal) {
	switch {
	case o.Root != nil:
		r.EventClaimProblem(o.Root, problem)
	case len(o.Observed.EarlierHosts) > 0:
		r.EventClaimProblem(&o.Observed.EarlierHosts[0], problem)
	}
}

// SetPlacedCondition sets the root's Placed condition if there is a problem, with an event if the
// problem is new, and removes it otherwise.
func (r *reporter) SetPlacedCondition(ctx context.Context, root *corev1.PersistentVolumeClaim, problem *mirror.Refusal) error {
	if root == nil {
		return nil
	}
	if problem != nil && report.ReasonFailsClaim(problem.Reason) {
		problem = report.AttemptedMembersOf(root).AppendOtherProblems(problem, r.link.Member, root.Annotations[route.AnnSelectedNode])
	}
	shown := report.PlacedApplyBody(root, mirror.Reporter{ClusterID: r.link.ClusterID}, problem, r.link.Clock.Now())
	if shown == nil {
		return nil
	}
	if problem != nil && report.ReasonQuotesMember(problem.Reason) && !r.allowReport(root.UID, r.link.Clock.Now()) {
		return nil // the problem is reported later
	}
	if problem != nil {
		r.EventClaimProblem(root, problem)
	}
	return r.link.HostWriter.ApplyStatus(ctx, actor, root, shown)
}

// ReportMemberRejection reports why the member's API server rejects a claim (a quota, an admission
// policy), and retries at a limited rate.
func (r *reporter) ReportMemberRejection(ctx context.Context, root *corev1.PersistentVolumeClaim, doing string, err error) error {
	problem := report.MemberWriteRefusal(r.link.Registration, doing, "the claim", err)
	if problem == nil {
		return err
	}
	if failed := r.SetPlacedCondition(ctx, root, problem); failed != nil {
		return failed
	}
	return err
}

// SetPlacedOfLeaving sets the Placed condition of a claim for a member that is being deregistered, or removes it if
// problem is nil. By then, the member's root_pvc has stopped or cannot reach the member. When the cluster
// is registered again, its root_pvc owns the condition.
func SetPlacedOfLeaving(ctx context.Context, host *guarded.HostWriter, claim *corev1.PersistentVolumeClaim, clusterID string, problem *mirror.Refusal, now time.Time) error {
	shown := report.PlacedApplyBody(claim, mirror.Reporter{ClusterID: clusterID}, problem, now)
	if shown == nil {
		return nil
	}
	return host.ApplyStatus(ctx, actor, claim, shown)
}
