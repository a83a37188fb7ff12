package hostsnapshot

import (
	"context"
	"fmt"
	"sync"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/route"
	"github.com/xylem-io/xylem/internal/snapshot"
)

const (
	// Name is the name of the controller.
	Name  = "host_snapshot"
	actor = guarded.Actor("host-snapshot")
)

// Reconciler reconciles the host's VolumeSnapshotContents of Xylem's driver.
type Reconciler struct {
	// Client reads the host's cache and writes to the host; Live bypasses the cache.
	Client client.Client
	Live   client.Reader
	// Snapshots reads the host's snapshots, if the host serves them.
	Snapshots *route.OptionalCache
	// Recorder emits events on VolumeSnapshots.
	Recorder events.EventRecorder
	// Records records what an admin abandoned.
	Records *fencing.HostRecords
	// Clock provides the times of errors.
	Clock clock.PassiveClock

	once sync.Once
	root *guarded.HostWriter
	news *news.StateMemory // about the contents' problems, by UID
}

func (r *Reconciler) initializeOnce() {
	r.once.Do(func() {
		r.root, r.news = guarded.NewHostWriter(r.Client, "", guarded.HostOnlyGuard{}), news.New(r.Clock)
	})
}

// emittedEvents returns the events that were emitted.
func (r *Reconciler) emittedEvents() *news.StateMemory {
	r.initializeOnce()
	return r.news
}

// hostWriter returns the client that writes to the host.
func (r *Reconciler) hostWriter() *guarded.HostWriter {
	r.initializeOnce()
	return r.root
}

// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots;volumesnapshotclasses,verbs=list;watch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents,verbs=list;watch;patch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents/status,verbs=patch

// SetupWithManager adds the controller. It receives no requests until the host serves snapshots.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		WatchesRawSource(r.Snapshots.EventSource(&snapshotv1.VolumeSnapshotContent{}, route.EnqueueHandler(requestOfSameName))).
		WatchesRawSource(r.Snapshots.EventSource(&snapshotv1.VolumeSnapshot{}, route.EnqueueHandler(requestOfSnapshot))).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(r.volumeToRequests), builder.WithPredicates(route.SinceStartPredicate(), route.ConcernsPredicate(route.VolumeChanged))).
		Watches(&v1alpha1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(r.registrationToRequests), builder.WithPredicates(route.ConcernsPredicate(route.PartChanged(index.RegistrationStateOf)))).
		WithEventFilter(route.ChangedPredicate()).
		Complete(guarded.WrapReconciler(r))
}

// Reconcile takes the next step for one content, if host_snapshot owns it.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if r.Snapshots.ServedCache() == nil {
		return reconcile.Result{}, nil
	}
	s, err := r.observeContent(ctx, request.Name)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	plan := snapshot.NextPlan(s)
	if plan.Owner != snapshot.HostSnapshot {
		r.emittedEvents().ForgetState(s.Host.UID)
		return reconcile.Result{}, nil
	}
	if plan.Step != snapshot.None {
		return reconcile.Result{}, r.executeStep(ctx, s, plan.Step)
	}
	again, err := r.reportProblem(ctx, s, plan)
	return reconcile.Result{RequeueAfter: again}, err
}

// observeContent observes a content, and reports whether its member is connected.
func (r *Reconciler) observeContent(ctx context.Context, name string) (*snapshot.Observed, error) {
	s, cluster, err := snapshot.ObserveHost(ctx, r.Client, name)
	if err != nil || s == nil || cluster == "" {
		return s, err
	}
	registrations, err := index.RegistrationsOfCluster(ctx, r.Client, cluster)
	if err != nil {
		return nil, err
	}
	if len(registrations) == 0 {
		s.Away = snapshot.UnregisteredRefusal(cluster)
		return s, nil
	}
	s.Member.ClusterID = cluster
	for i := range registrations {
		cr := &registrations[i]
		s.Member.Registration = cr.Name
		connected := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionConnected)
		switch {
		case index.ConnectionOf(cr).Connected, index.ConnectionOf(cr).Connecting:
			s.Away = nil
			return s, nil
		case connected != nil:
			s.Away = snapshot.MemberAwayRefusal(cr.Name, connected.LastTransitionTime.Time)
		}
	}
	return s, nil
}

// executeStep takes a step of this controller.
func (r *Reconciler) executeStep(ctx context.Context, s *snapshot.Observed, step snapshot.Step) error {
	switch step {
	case snapshot.Release:
		e, unplaced, err := r.snapshotProver().ProveSnapshotUnplaced(ctx, s.Host)
		if err != nil || !unplaced {
			return err
		}
		return r.hostWriter().DropHostContent(ctx, actor, s.Host, e)
	case snapshot.Abandon:
		return r.abandonSnapshot(ctx, s)
	default:
		return fmt.Errorf("step %s does not belong to %s", step, Name)
	}
}

func (r *Reconciler) snapshotProver() proof.SnapshotProver {
	return proof.SnapshotProver{Prover: proof.Prover{HostLive: r.Live, Clock: r.Clock}}
}

// abandonSnapshot records that a member's snapshot was abandoned, and then releases the content.
func (r *Reconciler) abandonSnapshot(ctx context.Context, s *snapshot.Observed) error {
	what := fmt.Sprintf("snapshot %q (%q in the member)", s.Host.Name, mirrorsnapshot.LeafContentName(s.Host))
	if mirrorsnapshot.IsAbandonedSnapshot(s.Host) {
		what += fmt.Sprintf(": %s=true", v1alpha1.AnnotationAbandon)
	} else {
		what += ": deleted while its cluster was not registered"
	}
	if cluster := mirrorsnapshot.ContentPlacedIn(s.Host); cluster != "" {
		if err := r.Records.RecordAbandoned(ctx, r.hostWriter(), cluster, what); err != nil {
			return err
		}
	}
	e, released := r.snapshotProver().DroppableIfReleased(s.Host)
	if !released {
		return nil
	}
	return r.hostWriter().DropHostContent(ctx, actor, s.Host, e)
}

// reportProblem writes the problem to the content's status, unless the content is foreign, and emits an event on
// the VolumeSnapshot if one is due. It returns when the next one is due.
func (r *Reconciler) reportProblem(ctx context.Context, s *snapshot.Observed, plan snapshot.Plan) (time.Duration, error) {
	if plan.Report != nil && mirrorsnapshot.IsXylemContent(s.Host) {
		if status := s.DesiredHostStatus(plan.Report, r.Clock.Now()); !equality.Semantic.DeepEqual(s.Host.Status, status) {
			if err := r.hostWriter().PatchHostContentStatus(ctx, actor, s.Host, status); err != nil {
				return 0, err
			}
		}
	}
	return s.EmitProblemEvent(r.Recorder, r.emittedEvents(), plan.Report), nil
}

func requestForSnapshotUID(uid types.UID) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: index.ClusterScopedKey(mirrorsnapshot.ContentName(uid))}}
}

func requestOfSameName(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: index.ClusterScopedKey(obj.GetName())}}
}

func requestOfSnapshot(_ context.Context, obj client.Object) []reconcile.Request {
	return requestForSnapshotUID(obj.GetUID())
}

// volumeToRequests enqueues the snapshots of the claim that a volume is bound to, because the volume may be
// a promise that was just fulfilled.
func (r *Reconciler) volumeToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil || r.Snapshots.ServedCache() == nil {
		return nil
	}
	found, err := index.SnapshotsOfClaim(ctx, r.Client, hostpv.ClaimRefKey(pv))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the snapshots of a volume", "volume", pv.Name)
	}
	var requests []reconcile.Request
	for i := range found {
		requests = append(requests, requestForSnapshotUID(found[i].UID)...)
	}
	return requests
}

// registrationToRequests enqueues all contents, because a new registration does not contain its cluster's
// ID yet.
func (r *Reconciler) registrationToRequests(ctx context.Context, _ client.Object) []reconcile.Request {
	if r.Snapshots.ServedCache() == nil {
		return nil
	}
	all, err := index.OwnHostContents(ctx, r.Client)
	return route.RequestsFor[snapshotv1.VolumeSnapshotContent](ctx, all, err, nil)
}
