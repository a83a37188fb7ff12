package source

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "source"
	actor = guarded.Actor("source")

	// workers is the number of concurrent reconciles. Each makes a few cached reads and at most
	// one write.
	workers = 4
)

// Reconciler selects the member for claims with a data source.
type Reconciler struct {
	// Client reads the host's cache and writes to the host.
	Client client.Client
	// Namespace is the manager's namespace, which contains the CSIStorageCapacities.
	Namespace string
	// Snapshots reads the host's snapshots, if the host serves them.
	Snapshots *route.OptionalCache

	root *guarded.HostWriter
}

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes;pods;nodes;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities,namespace=xylem-system,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots;volumesnapshotcontents,verbs=list;watch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.root = guarded.NewHostWriter(r.Client, "", guarded.HostOnlyGuard{})
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&corev1.PersistentVolumeClaim{}, route.EnqueueHandler(route.EnqueueItselfIf(unboundWithDataSource))).
		Watches(&corev1.PersistentVolumeClaim{}, route.EnqueueHandler(r.claimToClones), builder.WithPredicates(route.SinceStartPredicate())).
		Watches(&corev1.PersistentVolume{}, route.EnqueueHandler(r.volumeToClones), builder.WithPredicates(route.SinceStartPredicate())).
		WatchesRawSource(r.Snapshots.EventSource(&snapshotv1.VolumeSnapshot{}, route.EnqueueHandler(r.snapshotToClaims))).
		WatchesRawSource(r.Snapshots.EventSource(&snapshotv1.VolumeSnapshotContent{}, route.EnqueueHandler(r.snapshotToClaims))).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.classToWaitingClaims)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.objectToWaitingClaims), builder.WithPredicates(route.ConcernsPredicate(ignoreUpdates))).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.namespaceToWaitingClaims), builder.WithPredicates(route.SinceStartPredicate(), route.ConcernsPredicate(route.LabelsChanged))).
		Watches(&v1alpha1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(r.objectToWaitingClaims), builder.WithPredicates(route.ConcernsPredicate(route.PartChanged(index.RegistrationStateOf)))).
		WithEventFilter(route.ChangedPredicate()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(guarded.WrapReconciler(r))
}

// Reconcile selects the member for one claim.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observeClaim(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decideNodeSelection(o)
	if !d.write {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.annotateClaim(ctx, o.claim, d)
}

// annotateClaim writes the selected node and the record of the data source.
func (r *Reconciler) annotateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, d decision) error {
	after := claim.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	switch {
	case d.removeSelection:
		delete(after.Annotations, route.AnnSelectedNode)
		delete(after.Annotations, v1alpha1.AnnotationSteeredTo)
	case d.node != "":
		after.Annotations[route.AnnSelectedNode] = d.node
		after.Annotations[v1alpha1.AnnotationSteeredTo] = d.node
	}
	if d.record != nil {
		after.Annotations[v1alpha1.AnnotationSource] = d.record.AnnotationValue()
	}
	return r.root.AnnotateClaim(ctx, actor, claim, after)
}

func (r *Reconciler) observeClaim(ctx context.Context, key types.NamespacedName) (observed, error) {
	var o observed
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Client, key)
	if err != nil || claim == nil || !unboundWithDataSource(claim) {
		return o, err
	}
	o.claim = claim
	if o.class, err = index.FindObject[storagev1.StorageClass](ctx, r.Client, index.ClusterScopedKey(hostpv.ClassNameOf(claim))); err != nil || !hostpv.IsXylemClass(o.class) {
		return o, err
	}
	if o.source, err = index.ReadDataSource(ctx, r.Client, r.Client, r.Snapshots.CheckServed, claim); err != nil {
		return o, err
	}
	if o.namespace, err = index.FindNamespace(ctx, r.Client, claim.Namespace); err != nil {
		return o, err
	}
	all, err := index.ListMembers(ctx, r.Client, r.Namespace)
	if err != nil {
		return o, err
	}
	o.members, _ = placement.SplitLeaving(all)
	pods, err := index.PodsOfClaim(ctx, r.Client, key)
	for i := range pods {
		if pods[i].Spec.NodeName == "" && pods[i].DeletionTimestamp == nil {
			o.pods = append(o.pods, pods[i])
		}
	}
	return o, err
}

// unboundWithDataSource reports whether a claim has a data source and names no volume.
func unboundWithDataSource(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" && mirror.HasDataSource(claim)
}

// claimToClones enqueues the claims whose data source is the claim.
func (r *Reconciler) claimToClones(ctx context.Context, claim client.Object) []reconcile.Request {
	return r.requestsForClones(ctx, client.ObjectKeyFromObject(claim))
}

// volumeToClones enqueues the claims whose data source is the volume's claim.
func (r *Reconciler) volumeToClones(ctx context.Context, obj client.Object) []reconcile.Request {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != v1alpha1.ProvisionerName && !hostpv.IsPromise(pv) {
		return nil
	}
	return r.requestsForClones(ctx, hostpv.ClaimRefKey(pv))
}

// snapshotToClaims enqueues the claims whose data source is a VolumeSnapshot. For a
// VolumeSnapshotContent, it uses the content's VolumeSnapshot.
func (r *Reconciler) snapshotToClaims(ctx context.Context, obj client.Object) []reconcile.Request {
	claims, err := index.UnfilledClaimsFromSnapshot(ctx, r.Client, index.SnapshotKeyOf(obj))
	return route.RequestsFor(ctx, claims, err, unboundWithDataSource)
}

func (r *Reconciler) requestsForClones(ctx context.Context, source types.NamespacedName) []reconcile.Request {
	claims, err := index.UnfilledClaimsFrom(ctx, r.Client, source.Namespace, mirror.ClaimDataSourceKey(source.Name))
	return route.RequestsFor(ctx, claims, err, unboundWithDataSource)
}

func (r *Reconciler) classToWaitingClaims(ctx context.Context, class client.Object) []reconcile.Request {
	claims, err := index.WaitingClaimsOfClass(ctx, r.Client, class.GetName())
	return route.RequestsFor(ctx, claims, err, unboundWithDataSource)
}

// namespaceToWaitingClaims enqueues the waiting claims with a data source in a namespace.
func (r *Reconciler) namespaceToWaitingClaims(ctx context.Context, namespace client.Object) []reconcile.Request {
	claims, err := index.WaitingClaimsIn(ctx, r.Client, namespace.GetName())
	return route.RequestsFor(ctx, claims, err, unboundWithDataSource)
}

// ignoreUpdates is the filter that ignores all updates, because only the existence of a Node matters.
func ignoreUpdates(_, _ client.Object) bool { return false }

// objectToWaitingClaims enqueues all waiting claims with a data source.
func (r *Reconciler) objectToWaitingClaims(ctx context.Context, _ client.Object) []reconcile.Request {
	claims, err := index.WaitingClaims(ctx, r.Client)
	return route.RequestsFor(ctx, claims, err, unboundWithDataSource)
}
