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
	"github.com/xylem-io/xylem/internal/snapshot/lifecycle"
	"github.com/xylem-io/xylem/internal/snapshot/observe"
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
	news *news.News // about the contents' problems, by UID
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
	return link.Controller(Name, workers, &reconciler{link, o, news.New(link.Clock)}, observe.Observer{Link: link}.Sources()...)
}

// Reconcile takes the next step for one snapshot, or reports its state.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := observe.Observer{Link: r.Link, SilentAfter: r.SilentAfter}.OfContent(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if s == nil {
		if len(r.Orphans.Snapshots(r.Registration).Found) > 0 {
			r.Orphans.RequestAccount(r.Registration) // one of the orphans may be gone
		}
		return reconcile.Result{}, nil
	}
	plan := lifecycle.Next(s)
	if s.Host == nil && plan.By(lifecycle.LeafSnapshot) == lifecycle.None && plan.Phase == lifecycle.Orphaned {
		r.Orphans.RequestAccount(r.Registration)
	}
	if step := plan.By(lifecycle.LeafSnapshot); step != lifecycle.None {
		return reconcile.Result{}, r.act(ctx, s, step)
	}
	again, err := r.report(ctx, s, plan)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: route.Sooner(again, s.SilentIn)}, nil
}

// act takes a step of this controller.
func (r *reconciler) act(ctx context.Context, s *snapshot.Observed, step lifecycle.Step) error {
	switch step {
	case lifecycle.Secure:
		return r.Leaf.PatchContent(ctx, actor, s.Content, s.SecuredContent(), s.Leaf, s.Host)
	case lifecycle.RecordContent:
		return r.Root.PatchContent(ctx, actor, s.Host, mirrorsnapshot.RecordContent(s.Host, s.Content))
	default:
		return fmt.Errorf("step %s does not belong to %s", step, Name)
	}
}

// report writes the status of the host content unless host_snapshot owns it. While there is a problem, it
// emits an event on the VolumeSnapshot again and again, and returns when the next one is due: the host's
// snapshot-controller does not copy the status to a VolumeSnapshot that was ready before.
func (r *reconciler) report(ctx context.Context, s *snapshot.Observed, plan lifecycle.Plan) (time.Duration, error) {
	if s.Host == nil || plan.Owner == lifecycle.HostSnapshot || plan.Step != lifecycle.None && s.Content == nil {
		if s.Host != nil {
			r.news.Forget(s.Host.UID)
		}
		return 0, nil
	}
	if status := s.Status(plan.Report, r.Clock.Now()); !equality.Semantic.DeepEqual(s.Host.Status, status) {
		if err := r.Root.PatchContentStatus(ctx, actor, s.Host, status); err != nil {
			return 0, err
		}
	}
	return s.Announce(r.Recorder, r.news, plan.Report), nil
}
