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
	"github.com/xylem-io/xylem/internal/controller/clusterregistration/conditions"
	"github.com/xylem-io/xylem/internal/deregistration"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/guarded/settling"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member/hostrecord"
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
	// Objects indexes the host's objects by the member that they belong to.
	Objects *route.Router
	// Fleet connects the members.
	Fleet deregistration.Fleet
	// Recorder emits events on registrations, Pods and claims.
	Recorder events.EventRecorder
	// Records contains the host's record of each member, which names the owning registration and the
	// released volumes.
	Records *hostrecord.Records
	// Orphans and Stuck contain the members' orphans and stuck deletions.
	Orphans *account.OrphanTracker
	Stuck   *account.StuckDeletions
	// ReportPlaced sets or removes the Placed conditions of claims when their cluster is deregistered.
	ReportPlaced deregistration.ReportPlaced
	// Classes contains the StorageClasses of the members.
	Classes *reflection.MemberClasses
	// Snapshots reads the host's snapshots, if the host serves them.
	Snapshots *route.Optional
	// Clock is the wall clock.
	Clock clock.PassiveClock
	// HostID is the host's cluster ID. Namespace is the namespace of the kubeconfig Secrets.
	HostID, Namespace string

	unlinked sync.Map // see deregistration.Leaver
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
		Watches(&v1alpha1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(r.rivals)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.usersOfSecret)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.ofNode)).
		Watches(&corev1.PersistentVolume{}, route.After(countDelay, r.ofObject), builder.WithPredicates(route.SinceStart())).
		Watches(&corev1.PersistentVolumeClaim{}, route.After(countDelay, r.ofObject), builder.WithPredicates(route.SinceStart())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.deletingOfPod), builder.WithPredicates(route.SinceStart())).
		Watches(&corev1.Pod{}, route.After(countDelay, r.restrictingOfPod), builder.WithPredicates(route.SinceStart(), route.Concerning(route.Of(runningOf)))).
		Watches(&corev1.Namespace{}, route.After(countDelay, r.restricting), builder.WithPredicates(route.SinceStart(), route.Concerning(route.Relabelled))).
		WatchesRawSource(fleet.Source()).
		WatchesRawSource(r.Orphans.Source()).
		WatchesRawSource(r.Stuck.Source()).
		WatchesRawSource(r.Classes.Changes()).
		WatchesRawSource(r.Snapshots.Events(&snapshotv1.VolumeSnapshotContent{}, route.After(countDelay, r.ofObject))).
		WithEventFilter(route.Changed()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(settling.Reconciler(r))
}

// Reconcile brings the member and the registration's status in line with the registration's spec
// and Secret.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var registration v1alpha1.ClusterRegistration
	if err := r.Client.Get(ctx, request.NamespacedName, &registration); err != nil {
		if apierrors.IsNotFound(err) {
			r.Fleet.Remove(request.Name)
			r.Orphans.Forget(request.Name)
			r.Stuck.Forget(request.Name)
			r.Classes.Forget(request.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read registration %s: %w", request.Name, err)
	}
	if registration.DeletionTimestamp != nil {
		return r.leaver().Deregister(ctx, &registration)
	}
	if !controllerutil.ContainsFinalizer(&registration, v1alpha1.FinalizerRegistration) {
		before := registration.DeepCopy()
		controllerutil.AddFinalizer(&registration, v1alpha1.FinalizerRegistration)
		if err := r.patch(ctx, before, &registration); err != nil {
			return reconcile.Result{}, fmt.Errorf("add the finalizer to registration %s: %w", request.Name, err)
		}
		return reconcile.Result{}, nil // the watch enqueues the registration again
	}
	wanted, err := r.registrationOf(ctx, &registration)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.Fleet.Ensure(wanted)
	return reconcile.Result{}, r.report(ctx, &registration, conditions.Override{})
}

// leaver returns the Leaver that removes the members of deleted registrations.
func (r *Reconciler) leaver() *deregistration.Leaver {
	return &deregistration.Leaver{
		Client: r.Client, Fleet: r.Fleet, Recorder: r.Recorder, Records: r.Records, ReportPlaced: r.ReportPlaced, Clock: r.Clock, Snapshots: r.Snapshots,
		Unlinked: &r.unlinked, Registration: r.registrationOf, Patch: r.patch,
		Report: func(ctx context.Context, cr *v1alpha1.ClusterRegistration, reason, message string) error {
			return r.report(ctx, cr, conditions.Override{Reason: reason, Message: message})
		},
	}
}

func (r *Reconciler) patch(ctx context.Context, before, after *v1alpha1.ClusterRegistration) error {
	return r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
}

const fieldOwner = client.FieldOwner("xylem-cluster-registration")

// rivals enqueues the other registrations that have the same cluster or node, because whether Xylem
// rejects one of them depends on the others.
func (r *Reconciler) rivals(ctx context.Context, obj client.Object) []reconcile.Request {
	changed, ok := obj.(*v1alpha1.ClusterRegistration)
	if !ok {
		return nil
	}
	return r.matching(ctx, func(other *v1alpha1.ClusterRegistration) bool {
		return other.Name != changed.Name && (other.NodeName() == changed.NodeName() ||
			other.Status.ClusterID != "" && other.Status.ClusterID == changed.Status.ClusterID)
	})
}

func (r *Reconciler) usersOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	if secret.GetNamespace() != r.Namespace {
		return nil
	}
	return r.matching(ctx, func(user *v1alpha1.ClusterRegistration) bool {
		return user.Spec.KubeconfigSecretRef.Name == secret.GetName()
	})
}

func (r *Reconciler) ofNode(ctx context.Context, node client.Object) []reconcile.Request {
	return r.matching(ctx, func(registration *v1alpha1.ClusterRegistration) bool {
		return registration.NodeName() == node.GetName()
	})
}

// ofObject enqueues the registration of the member in which a volume or claim is placed.
func (r *Reconciler) ofObject(ctx context.Context, obj client.Object) []reconcile.Request {
	id := obj.GetLabels()[v1alpha1.LabelClusterID]
	if id == "" {
		id = obj.GetAnnotations()[v1alpha1.AnnotationPlacedIn]
	}
	if id == "" {
		return nil
	}
	registrations, err := index.RegistrationsOf(ctx, r.Client, id)
	return route.RequestsFor(ctx, registrations, err, nil)
}

// deletingOfPod enqueues the registration on whose node the Pod runs, if the registration is being
// deleted.
func (r *Reconciler) deletingOfPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	return r.matching(ctx, func(registration *v1alpha1.ClusterRegistration) bool {
		return registration.DeletionTimestamp != nil && registration.NodeName() == pod.Spec.NodeName
	})
}

func (r *Reconciler) matching(ctx context.Context, match func(*v1alpha1.ClusterRegistration) bool) []reconcile.Request {
	var list v1alpha1.ClusterRegistrationList
	err := r.Client.List(ctx, &list, index.ReadOnly)
	return route.RequestsFor(ctx, list.Items, err, match)
}
