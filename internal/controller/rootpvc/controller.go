package rootpvc

import (
	"context"
	"errors"
	"time"

	"github.com/xylem-io/xylem/internal/route"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/backlog"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

const (
	// Name is the name of the controller.
	Name  = "root_pvc"
	actor = guarded.Actor("root-pvc")
	// workers is the number of claims of one member that are reconciled concurrently. Each needs
	// at most a write or two before it waits for a watch.
	workers = 8
	// counterpartCheckInterval is the interval at which other members are checked for the leaf claim of a root whose
	// placement a restored host may have lost, because no event enqueues the root when a member connects.
	// The same applies to a host PV whose claimRef names another claim: its next edit may be to a third
	// claim, and then no event enqueues this root.
	counterpartCheckInterval = 10 * time.Second
	// restoreCheckInterval is the interval at which it is checked whether another member may still detect that
	// the host was restored before this process became the leader.
	restoreCheckInterval = time.Second
	// keptCheckInterval is the interval at which the host PV that represents a deleted claim's volume is looked
	// up again. While a root waits, the interval is counterpartCheckInterval. The events of such a PV do not enqueue the
	// claim here if its record was changed.
	keptCheckInterval = 5 * time.Minute
	// DefaultSilentAfter is the default of --silent-after. A provisioner normally responds when its
	// call to the driver times out: after 10 s by default (csi-provisioner's --timeout), and after 60 s
	// in the manifests of several drivers. The rest is for a restart of the provisioner. leaf_snapshot
	// uses the same time: a csi-snapshotter responds before its call to the driver.
	DefaultSilentAfter = 2 * time.Minute
)

// reconciler reconciles the host's claims that concern one member, by the name that root and leaf
// share.
type reconciler struct {
	*member.Link
	Options
	reports     *reporter
	linkStarted time.Time // when the link began
}

// Options contains what the controllers of all members share.
type Options struct {
	observe.Options
	// Namespace is the manager's namespace in the host, where its records are.
	Namespace string
	// Mirrors contains the host PVs that were created for claims.
	Mirrors *account.MirrorTracker
	// Latency measures provisioning latency, starting with the placement.
	Latency *account.ProvisioningLatency
	// Backlog delays claims that the host cannot bind yet.
	Backlog *backlog.Queue
	// OtherMembers returns the other registered members.
	OtherMembers func(context.Context, mirror.Member) ([]proof.OtherMember, error)
}

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots;volumesnapshotcontents,verbs=list;watch

// Setup adds the controller to a member's link.
func Setup(link *member.Link, o Options) error {
	r := newReconciler(link, o)
	r.linkStarted = link.Clock.Now()
	return link.AddController(Name, workers, r, sourcesOf(link, r.newClaimObserver, o.Orphans, o.Backlog)...)
}

func newReconciler(link *member.Link, o Options) *reconciler {
	return &reconciler{Link: link, Options: o, reports: newReporter(link)}
}

// Reconcile takes the next step for one claim.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.newClaimObserver().ObserveClaim(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	o = subjectOf(o)
	plan := planForClaim(o)
	if plan.Step != lifecycle.Place {
		r.Backlog.Remove(r.ClusterID, request.NamespacedName)
	}
	if plan.Step != lifecycle.SelectNode && o.Root != nil {
		r.reports.EndState(o.Root.UID)
	}
	switch err := r.executePlan(ctx, o, plan); {
	case errors.Is(err, errLeafClaimKept) && o.Root == nil:
		return reconcile.Result{RequeueAfter: keptCheckInterval}, nil
	case errors.Is(err, errMembersUnknown):
		return reconcile.Result{RequeueAfter: restoreCheckInterval}, nil
	case errors.Is(err, errLeafClaimKept):
		return reconcile.Result{RequeueAfter: counterpartCheckInterval}, nil
	case err != nil, o.Root == nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.requeueDelay(o)}, nil
}

// requeueDelay returns after how long a root must be observed again, or 0 if an event will enqueue it.
func (r *reconciler) requeueDelay(o observe.Claim) time.Duration {
	if p := o.Observed.Placement; p.Counterparts.MayExist() || p.Diverted != nil {
		return counterpartCheckInterval
	}
	return route.SoonerDelay(r.reports.TakeRequeueDelay(o.Root.UID), o.Observed.Placement.Attempt.CheckSilenceIn)
}

func (r *reconciler) newClaimObserver() observe.Observer {
	return observe.ObserverOfLink(r.Link, r.Options.Options)
}

// subjectOf returns the objects that the next step concerns: those of the claim or, if it can be deleted, the
// leaf claim of an earlier root that has the claim's name.
func subjectOf(o observe.Claim) observe.Claim {
	if o.Stale != nil && lifecycle.NextPlan(o.Stale.Observed).Step == lifecycle.DeleteLeft {
		return *o.Stale
	}
	return o
}

// planForClaim returns this controller's step or report for a claim. The zero Plan leaves the step
// to another controller, whose write enqueues the claim.
func planForClaim(o observe.Claim) lifecycle.Plan {
	report := lifecycle.Plan{Owner: lifecycle.RootPVC}
	if o.Observed == nil {
		return report
	}
	plan := lifecycle.NextPlan(o.Observed)
	switch {
	case plan.Owner != lifecycle.RootPVC && (plan.Step == lifecycle.None || plan.Phase == lifecycle.Idle):
		return report // the claim does not wait for that controller
	case plan.Owner != lifecycle.RootPVC:
		return lifecycle.Plan{}
	}
	return plan
}
