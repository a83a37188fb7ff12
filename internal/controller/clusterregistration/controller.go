package clusterregistration

import (
	"context"
	"fmt"
	"sync"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/account"
	"github.com/xylem-io/xylem/internal/deregistration"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/reflection"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// countDelay is the delay before volumes are counted, so that several changes cause only one
	// count.
	countDelay = 5 * time.Second
	// workers is the number of concurrent reconciles. Each makes a few reads and a write.
	workers = 4
)

// Reconciler reconciles ClusterRegistrations.
type Reconciler struct {
	// Client reads the host's cache and writes to the host. Live bypasses the cache.
	Client client.Client
	Live   client.Reader
	// Router indexes the host's objects by the member that they belong to.
	Router *route.Router
	// Fleet connects the members.
	Fleet deregistration.Fleet
	// Recorder emits events on registrations, Pods and claims.
	Recorder events.EventRecorder
	// Records contains the host's record of each member, which names the owning registration and the
	// released volumes.
	Records *fencing.HostRecords
	// Orphans and Stuck contain the members' orphans and stuck deletions.
	Orphans *account.OrphanTracker
	Stuck   *account.StuckDeletions
	// ReportPlaced sets or removes the Placed conditions of claims when their cluster is deregistered.
	ReportPlaced deregistration.ReportPlaced
	// Classes contains the StorageClasses of the members.
	Classes *reflection.MemberClasses
	// Snapshots reads the host's snapshots, if the host serves them.
	Snapshots *route.OptionalCache
	// Clock is the wall clock.
	Clock clock.PassiveClock
	// HostID is the host's cluster ID. Namespace is the namespace of the kubeconfig Secrets.
	HostID, Namespace string
	// HostCABundle contains the certificates with which the manager verifies the host's API server.
	HostCABundle []byte
	// HostShowsPodResources is that of mirror.Member.
	HostShowsPodResources bool

	endedLinks sync.Map // see deregistration.Deregisterer
}

// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,namespace=xylem-system,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create

// SetupWithManager adds the controller. fleet enqueues a registration when its member's state
// changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, fleet *fleet.Fleet) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("cluster_registration").
		For(&v1alpha1.ClusterRegistration{}).
		Watches(&v1alpha1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(r.rivalsToRequests)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.secretToRequests)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.nodeToRequests)).
		Watches(&corev1.PersistentVolume{}, route.DelayedHandler(countDelay, r.placedObjectToRequests), builder.WithPredicates(route.SinceStartPredicate())).
		Watches(&corev1.PersistentVolumeClaim{}, route.DelayedHandler(countDelay, r.placedObjectToRequests), builder.WithPredicates(route.SinceStartPredicate())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.requestOfDeregistration), builder.WithPredicates(route.SinceStartPredicate())).
		Watches(&corev1.Pod{}, route.DelayedHandler(countDelay, r.restrictedNodeToRequests), builder.WithPredicates(route.SinceStartPredicate(), route.ConcernsPredicate(route.PartChanged(podPlacementOf)))).
		Watches(&corev1.Namespace{}, route.DelayedHandler(countDelay, r.namespaceRulesToRequests), builder.WithPredicates(route.SinceStartPredicate(), route.ConcernsPredicate(route.LabelsChanged))).
		WatchesRawSource(fleet.StateChangeSource()).
		WatchesRawSource(r.Orphans.FactsChangeSource()).
		WatchesRawSource(r.Stuck.FactsChangeSource()).
		WatchesRawSource(r.Classes.ChangesSource()).
		WatchesRawSource(r.Snapshots.EventSource(&snapshotv1.VolumeSnapshotContent{}, route.DelayedHandler(countDelay, r.placedObjectToRequests))).
		WithEventFilter(route.ChangedPredicate()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(guarded.WrapReconciler(r))
}

// Reconcile brings the member and the registration's status in line with the registration's spec
// and Secret.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var registration v1alpha1.ClusterRegistration
	if err := r.Client.Get(ctx, request.NamespacedName, &registration); err != nil {
		if apierrors.IsNotFound(err) {
			r.Fleet.RemoveLink(request.Name)
			r.Orphans.ForgetMember(request.Name)
			r.Stuck.ForgetMember(request.Name)
			r.Classes.ForgetMember(request.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read registration %s: %w", request.Name, err)
	}
	if registration.DeletionTimestamp != nil {
		return r.newDeregisterer().Deregister(ctx, &registration)
	}
	if !controllerutil.ContainsFinalizer(&registration, v1alpha1.FinalizerRegistration) {
		before := registration.DeepCopy()
		controllerutil.AddFinalizer(&registration, v1alpha1.FinalizerRegistration)
		if err := r.patchRegistration(ctx, before, &registration); err != nil {
			return reconcile.Result{}, fmt.Errorf("add the finalizer to registration %s: %w", request.Name, err)
		}
		return reconcile.Result{}, nil // the watch enqueues the registration again
	}
	wanted, err := r.fleetRegistration(ctx, &registration)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.Fleet.EnsureLink(wanted)
	return reconcile.Result{}, r.reportStatus(ctx, &registration, ReadyOverride{})
}

// newDeregisterer returns the Leaver that removes the members of deleted registrations.
func (r *Reconciler) newDeregisterer() *deregistration.Deregisterer {
	return &deregistration.Deregisterer{
		Client: r.Client, Fleet: r.Fleet, Recorder: r.Recorder, Records: r.Records, ReportPlaced: r.ReportPlaced, Clock: r.Clock, Snapshots: r.Snapshots,
		EndedLinks: &r.endedLinks, FleetRegistration: r.fleetRegistration, PatchRegistration: r.patchRegistration,
		ReportNotReady: func(ctx context.Context, cr *v1alpha1.ClusterRegistration, reason, message string) error {
			return r.reportStatus(ctx, cr, ReadyOverride{Reason: reason, Message: message})
		},
	}
}

func (r *Reconciler) patchRegistration(ctx context.Context, before, after *v1alpha1.ClusterRegistration) error {
	return r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
}

const fieldOwner = client.FieldOwner("xylem-cluster-registration")

// rivalsToRequests enqueues the other registrations that have the same cluster or node, because whether Xylem
// rejects one of them depends on the others.
func (r *Reconciler) rivalsToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	changed, ok := obj.(*v1alpha1.ClusterRegistration)
	if !ok {
		return nil
	}
	return r.requestsMatching(ctx, func(other *v1alpha1.ClusterRegistration) bool {
		return other.Name != changed.Name && (nodeNamesConflict(other, changed) ||
			other.Status.ClusterID != "" && other.Status.ClusterID == changed.Status.ClusterID)
	})
}

func (r *Reconciler) secretToRequests(ctx context.Context, secret client.Object) []reconcile.Request {
	if secret.GetNamespace() != r.Namespace {
		return nil
	}
	return r.requestsMatching(ctx, func(user *v1alpha1.ClusterRegistration) bool {
		return user.Spec.KubeconfigSecretRef.Name == secret.GetName()
	})
}

func (r *Reconciler) nodeToRequests(ctx context.Context, node client.Object) []reconcile.Request {
	return r.requestsMatching(ctx, func(registration *v1alpha1.ClusterRegistration) bool {
		return registration.HasNode(node.GetName())
	})
}

// placedObjectToRequests enqueues the registration of the member in which a volume or claim is placed.
func (r *Reconciler) placedObjectToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	id := obj.GetLabels()[v1alpha1.LabelClusterID]
	if id == "" {
		id = obj.GetAnnotations()[v1alpha1.AnnotationPlacedIn]
	}
	if id == "" {
		return nil
	}
	registrations, err := index.RegistrationsOfCluster(ctx, r.Client, id)
	return route.RequestsFor(ctx, registrations, err, nil)
}

// requestOfDeregistration enqueues the registration on whose node the Pod runs, if the registration is being
// deleted.
func (r *Reconciler) requestOfDeregistration(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	return r.requestsMatching(ctx, func(registration *v1alpha1.ClusterRegistration) bool {
		return registration.DeletionTimestamp != nil && registration.HasNode(pod.Spec.NodeName)
	})
}

func (r *Reconciler) requestsMatching(ctx context.Context, match func(*v1alpha1.ClusterRegistration) bool) []reconcile.Request {
	var list v1alpha1.ClusterRegistrationList
	err := r.Client.List(ctx, &list, index.ReadOnly)
	return route.RequestsFor(ctx, list.Items, err, match)
}
