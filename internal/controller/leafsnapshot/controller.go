package leafsnapshot

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/snapshot"
)

const (
	// Name is the name of the controller.
	Name  = "leaf_snapshot"
	actor = guarded.Actor("leaf-snapshot")
	// workers is the number of snapshots of one member that are reconciled concurrently.
	workers = 4
)

// reconciler reconciles host contents whose snapshot is in one member.
type reconciler struct {
	*member.Link
	Options
	news *news.StateMemory // about the contents' problems, by UID
}

// Options contains what the controllers of all members share.
type Options struct {
	// Orphans is the orphan tracker. The controller notifies it of possible orphans.
	Orphans *account.OrphanTracker
	// SilentAfter is how long a member's snapshot-controller and csi-snapshotter may take to respond
	// before they are reported.
	SilentAfter time.Duration
}

// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents,verbs=list;watch;patch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents/status,verbs=patch

// Setup adds the controller to a member's link.
func Setup(link *member.Link, o Options) error {
	return link.AddController(Name, workers, &reconciler{link, o, news.New(link.Clock)}, snapshot.Observer{Link: link}.EventSources()...)
}

// Reconcile takes the next step for one snapshot, or reports its state.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := snapshot.Observer{Link: r.Link, SilentAfter: r.SilentAfter}.ObserveContent(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if s == nil {
		if len(r.Orphans.OrphanedSnapshots(r.Registration).Found) > 0 {
			r.Orphans.RequestInventory(r.Registration) // one of the orphans may be gone
		}
		return reconcile.Result{}, nil
	}
	plan := snapshot.NextPlan(s)
	if s.Host == nil && plan.StepOwnedBy(snapshot.LeafSnapshot) == snapshot.None && plan.Phase == snapshot.Orphaned {
		r.Orphans.RequestInventory(r.Registration)
	}
	if step := plan.StepOwnedBy(snapshot.LeafSnapshot); step != snapshot.None {
		return reconcile.Result{}, r.executeStep(ctx, s, step)
	}
	again, err := r.reportSnapshotState(ctx, s, plan)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: route.SoonerDelay(again, s.SilenceDueIn)}, nil
}

// executeStep takes a step of this controller.
func (r *reconciler) executeStep(ctx context.Context, s *snapshot.Observed, step snapshot.Step) error {
	switch step {
	case snapshot.Secure:
		return r.MemberWriter.PatchLeafContent(ctx, actor, s.Content, s.SecuredContent(), s.Leaf, s.Host)
	case snapshot.RecordContent:
		return r.HostWriter.PatchHostContent(ctx, actor, s.Host, mirrorsnapshot.RecordLeafContent(s.Host, s.Content))
	default:
		return fmt.Errorf("step %s does not belong to %s", step, Name)
	}
}

// reportSnapshotState writes the status of the host content unless host_snapshot owns it. While there is a problem, it
// emits an event on the VolumeSnapshot again and again, and returns when the next one is due: the host's
// snapshot-controller does not copy the status to a VolumeSnapshot that was ready before.
func (r *reconciler) reportSnapshotState(ctx context.Context, s *snapshot.Observed, plan snapshot.Plan) (time.Duration, error) {
	if s.Host == nil || plan.Owner == snapshot.HostSnapshot || plan.Step != snapshot.None && s.Content == nil {
		if s.Host != nil {
			r.news.ForgetState(s.Host.UID)
		}
		return 0, nil
	}
	if status := s.DesiredHostStatus(plan.Report, r.Clock.Now()); !equality.Semantic.DeepEqual(s.Host.Status, status) {
		if err := r.HostWriter.PatchHostContentStatus(ctx, actor, s.Host, status); err != nil {
			return 0, err
		}
	}
	return s.EmitProblemEvent(r.Recorder, r.news, plan.Report), nil
}
