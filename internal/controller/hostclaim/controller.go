package hostclaim

import (
	"context"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
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
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/reflection"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "host_claim"
	actor = guarded.Actor("host-claim")

	// workers is the number of concurrent reconciles. Each makes a few cached reads, and at most
	// one live read of a Node or volume.
	workers = 4
)

// Reconciler reports on unbound claims of Xylem's classes.
type Reconciler struct {
	// Client reads the host's cache and writes to the host; Live bypasses the cache.
	Client client.Client
	Live   client.Reader
	// Recorder emits events on claims.
	Recorder events.EventRecorder
	// Namespace is the manager's namespace, which contains the CSIStorageCapacities.
	Namespace string
	// Classes records the members' classes.
	Classes *reflection.MemberClasses
	// Snapshots reads the host's snapshots, if the host serves them.
	Snapshots *route.OptionalCache

	// Clock provides the times of conditions.
	Clock clock.PassiveClock

	root *guarded.HostWriter
}

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes;persistentvolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities,namespace=xylem-system,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots;volumesnapshotcontents,verbs=list;watch
// +kubebuilder:rbac:groups=populator.storage.k8s.io,resources=volumepopulators,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.root = guarded.NewHostWriter(r.Client, "", guarded.HostOnlyGuard{})
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&corev1.PersistentVolumeClaim{}, route.DelayedHandler(route.LowUrgencyDelay, route.EnqueueItselfIf(waitsOrShowsProblem))).
		Watches(&corev1.PersistentVolumeClaim{}, route.DelayedHandler(route.LowUrgencyDelay, r.claimToClones), builder.WithPredicates(route.SinceStartPredicate())).
		Watches(&corev1.PersistentVolume{}, route.DelayedHandler(route.LowUrgencyDelay, r.volumeToClones), builder.WithPredicates(route.SinceStartPredicate())).
		WatchesRawSource(r.Snapshots.EventSource(&snapshotv1.VolumeSnapshot{}, route.DelayedHandler(route.LowUrgencyDelay, r.snapshotToClaims))).
		WatchesRawSource(r.Snapshots.EventSource(&snapshotv1.VolumeSnapshotContent{}, route.DelayedHandler(route.LowUrgencyDelay, r.snapshotToClaims))).
		Watches(&corev1.Pod{}, route.DelayedHandler(route.LowUrgencyDelay, podToClaims)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.nodeToClaims), builder.WithPredicates(route.ConcernsPredicate(route.LabelsChanged))).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.classToWaitingClaims)).
		Watches(&storagev1.CSIStorageCapacity{}, handler.EnqueueRequestsFromMapFunc(r.capacityToWaitingClaims)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.namespaceToWaitingClaims), builder.WithPredicates(route.SinceStartPredicate(), route.ConcernsPredicate(route.LabelsChanged))).
		Watches(&v1alpha1.ClusterRegistration{}, handler.EnqueueRequestsFromMapFunc(r.objectToWaitingClaims), builder.WithPredicates(route.ConcernsPredicate(route.PartChanged(index.RegistrationStateOf)))).
		WatchesRawSource(r.Classes.DelayedSourceOfOffers(func(ctx context.Context, _ string) []reconcile.Request { return r.objectToWaitingClaims(ctx, nil) })).
		WithEventFilter(route.ChangedPredicate()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(guarded.WrapReconciler(r))
}

// Reconcile reconciles one claim.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observeClaim(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decideForClaim(o)
	if d.reason == v1alpha1.ReasonDataSourceUnsupported {
		if o.handledByPopulator, err = index.HasPopulator(ctx, r.Live, o.source.Of); err != nil {
			return reconcile.Result{}, err
		}
		d = decideForClaim(o)
	}
	if d.reason == v1alpha1.ReasonVolumeNotFound && !o.showsVolumeNotFound() {
		// The cache of volumes may lag behind that of claims.
		volume, err := index.FindObject[corev1.PersistentVolume](ctx, r.Live, index.ClusterScopedKey(o.claim.Spec.VolumeName))
		if err != nil {
			return reconcile.Result{}, err
		}
		if volume != nil {
			return reconcile.Result{RequeueAfter: missingVolumeInterval}, nil
		}
	}
	if d.unselect {
		if err := r.unselectNode(ctx, o.claim); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: d.again}, r.reportOnClaim(ctx, o.claim, d)
}

// unselectNode removes the selected node.
func (r *Reconciler) unselectNode(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	after := claim.DeepCopy()
	delete(after.Annotations, route.AnnSelectedNode)
	delete(after.Annotations, v1alpha1.AnnotationSteeredTo)
	return r.root.AnnotateClaim(ctx, actor, claim, after)
}

// reportOnClaim sets the claim's Placeable condition if there is a problem, and emits an event if the
// problem is new. Otherwise, it removes the condition. For the removal of a selection, it only
// emits an event.
func (r *Reconciler) reportOnClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, d decision) error {
	if claim == nil {
		return nil
	}
	var problem *mirror.Refusal
	if d.unselect {
		emitDecisionEvent(r.Recorder, claim, d)
	} else if d.reason != "" {
		problem = &mirror.Refusal{Reason: d.reason, Message: d.note}
	}
	shown := report.ClaimProblemApplyBody(claim, v1alpha1.ClaimPlaceable, problem, r.Clock.Now())
	if shown == nil {
		return nil
	}
	if err := r.root.ApplyStatus(ctx, actor, claim, shown); client.IgnoreNotFound(err) != nil {
		return err
	}
	if problem != nil {
		emitDecisionEvent(r.Recorder, claim, d)
	}
	return nil
}

func (r *Reconciler) observeClaim(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{now: r.Clock.Now(), memberHasClass: r.Classes.HasClass}
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Client, key)
	if err != nil {
		return o, err
	}
	if claim == nil || !waitsForVolume(claim) {
		if claim != nil && claim.DeletionTimestamp == nil {
			// With no other facts, the decision is empty, so the claim's condition is removed.
			o.claim = claim
		}
		return o, nil
	}
	o.claim = claim
	class, err := index.FindObject[storagev1.StorageClass](ctx, r.Client, index.ClusterScopedKey(hostpv.ClassNameOf(claim)))
	if err != nil || !hostpv.IsXylemClass(class) {
		return o, err
	}
	o.class = class
	if name := claim.Spec.VolumeName; name != "" {
		volume, err := index.FindObject[corev1.PersistentVolume](ctx, r.Client, index.ClusterScopedKey(name))
		if err != nil {
			return o, err
		}
		o.lacksVolume = volume == nil
	}

	if o.namespace, err = index.FindNamespace(ctx, r.Client, claim.Namespace); err != nil {
		return o, err
	}
	all, err := index.ListMembers(ctx, r.Client, r.Namespace)
	if err != nil {
		return o, err
	}
	o.members, o.leaving = placement.SplitLeaving(all)
	if o.selectedNode, err = r.classifySelection(ctx, claim, o.members); err != nil {
		return o, err
	}
	if o.source, err = index.ReadDataSource(ctx, r.Client, r.Client, r.Snapshots.CheckServed, claim); err != nil {
		return o, err
	}
	pods, err := r.unschedulablePods(ctx, key)
	o.podUnschedulable = len(pods) > 0
	if err != nil || o.source == nil {
		return o, err
	}
	for i := range pods {
		pod, err := r.observeWaitingPod(ctx, &pods[i], claim)
		if err != nil {
			return o, err
		}
		o.pods = append(o.pods, pod)
	}
	return o, nil
}

// classifySelection classifies the selected node. If the cache does not have it as a virtual node,
// selection reads it live, because the cache may lag.
func (r *Reconciler) classifySelection(ctx context.Context, claim *corev1.PersistentVolumeClaim, members []placement.Candidate) (selectedNodeKind, error) {
	name := claim.Annotations[route.AnnSelectedNode]
	if name == "" {
		return noNode, nil
	}
	node, err := index.FindObject[corev1.Node](ctx, r.Client, index.ClusterScopedKey(name))
	if err == nil && (node == nil || !nodes.IsVirtual(node)) {
		node, err = index.FindObject[corev1.Node](ctx, r.Live, index.ClusterScopedKey(name))
	}
	switch {
	case err != nil:
		return noNode, err
	case node != nil && nodes.IsVirtual(node):
		return virtualNode, nil
	case node != nil:
		return hostNode, nil
	}
	placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]
	if slices.ContainsFunc(members, func(m placement.Candidate) bool {
		return m.NodeName == name || m.HasNode(name) && m.ClusterID == placed
	}) {
		return virtualNode, nil // the virtual node was deleted, and Xylem will re-create it, or recovery selects another group
	}
	return missingNode, nil
}

// unschedulablePods returns the claim's Pods that cannot be scheduled.
func (r *Reconciler) unschedulablePods(ctx context.Context, claim types.NamespacedName) ([]corev1.Pod, error) {
	pods, err := index.PodsOfClaim(ctx, r.Client, claim)
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !isUnschedulable(&pod) }), err
}

func isUnschedulable(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return false
	}
	scheduled := podstatus.FindPodCondition(pod.Status.Conditions, corev1.PodScheduled)
	return scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable
}
