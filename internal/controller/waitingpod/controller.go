package waitingpod

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/reflection"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// Name is the name of the controller.
	Name  = "waiting_pod"
	actor = guarded.Actor("waiting-pod")

	// workers is the number of concurrent reconciles. Each makes a few cached reads.
	workers = 2
	// batchInterval batches changes that concern all waiting Pods. Capacities may change every two
	// seconds.
	batchInterval = 2 * time.Second
)

// Reconciler reports on Pods that wait for a node, or that are on a host node, which cannot mount a
// member's volume.
type Reconciler struct {
	// Client reads the host's cache and writes to the host.
	Client client.Client
	// Recorder emits events on Pods.
	Recorder events.EventRecorder
	// Namespace is the manager's namespace, which contains the CSIStorageCapacities.
	Namespace string
	// Classes records the members' classes.
	Classes *reflection.MemberClasses
	// Clock provides the times of conditions.
	Clock clock.PassiveClock

	root *guarded.HostWriter
	// waitingPods contains the Pods to enqueue when a Node, a capacity or a registration changes.
	waitingPods sync.Map // types.NamespacedName -> struct{}
}

// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims;persistentvolumes;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities,namespace=xylem-system,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.root = guarded.NewHostWriter(r.Client, "", guarded.HostOnlyGuard{})
	around := route.DelayedHandler(batchInterval, r.objectToWaitingPods)
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&corev1.Pod{}, route.DelayedHandler(route.LowUrgencyDelay, r.podToRequest)).
		Watches(&corev1.PersistentVolumeClaim{}, route.DelayedHandler(route.LowUrgencyDelay, r.claimToPods), builder.WithPredicates(route.SinceStartPredicate())).
		Watches(&corev1.Node{}, around, builder.WithPredicates(route.ConcernsPredicate(changedForPods))).
		Watches(&storagev1.CSIStorageCapacity{}, around).
		Watches(&corev1.Namespace{}, around, builder.WithPredicates(route.ConcernsPredicate(route.LabelsChanged))).
		Watches(&v1alpha1.ClusterRegistration{}, around, builder.WithPredicates(route.ConcernsPredicate(route.PartChanged(index.RegistrationStateOf)))).
		WatchesRawSource(r.Classes.DelayedSourceOfOffers(func(ctx context.Context, _ string) []reconcile.Request { return r.objectToWaitingPods(ctx, nil) })).
		WithEventFilter(route.ChangedPredicate()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(guarded.WrapReconciler(r))
}

// Reconcile checks one Pod.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observePod(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decidePodProblem(o)
	if o.pod == nil {
		return reconcile.Result{}, nil
	}
	shown := report.PodPlaceableApplyBody(o.pod, d.problem, o.now)
	if shown == nil {
		return reconcile.Result{RequeueAfter: d.again}, nil
	}
	was := report.PodConditionProblem(o.pod, v1alpha1.PodPlaceable)
	if err := r.root.ApplyStatus(ctx, actor, o.pod, shown); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if d.problem != nil && (was == nil || was.Reason != d.problem.Reason) {
		r.emitPodWaits(o.pod, d.problem)
	}
	return reconcile.Result{RequeueAfter: d.again}, nil
}

func (r *Reconciler) observePod(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{now: r.Clock.Now(), memberHasClass: r.Classes.HasClass}
	var err error
	if o.pod, err = index.FindObject[corev1.Pod](ctx, r.Client, key); err != nil {
		return o, err
	}
	if o.pod == nil || o.pod.DeletionTimestamp != nil {
		r.waitingPods.Delete(key)
		return o, nil
	}
	if o.onHostNode, err = r.isOnHostNode(ctx, o.pod); err != nil {
		return o, err
	}
	if o.pod.Spec.NodeName != "" && !o.onHostNode {
		r.waitingPods.Delete(key)
		return o, nil
	}
	for _, name := range podspec.ClaimNamesOfPod(o.pod) {
		claim, err := r.observeClaim(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name})
		if err != nil {
			return o, err
		}
		if claim != nil {
			o.claims = append(o.claims, *claim)
		}
	}
	if !o.podWaitsForNode() {
		r.waitingPods.Delete(key)
		return o, nil
	}
	// Store the Pod before Nodes, capacities and registrations are read, so that no change is
	// missed. If a Node begins to suit a Pod without claims, the scheduler's next attempt changes the Pod.
	if len(o.claims) > 0 {
		r.waitingPods.Store(key, struct{}{})
	}
	if _, unschedulable := unschedulableSince(o.pod); unschedulable || isRuleOfOneMember(o.claimProblem()) {
		if o.namespace, err = index.FindNamespace(ctx, r.Client, key.Namespace); err != nil {
			return o, err
		}
		o.members, err = index.ListMembers(ctx, r.Client, r.Namespace)
	}
	return o, err
}

// isOnHostNode reports whether the Pod is on a host node.
func (r *Reconciler) isOnHostNode(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if pod.Spec.NodeName == "" {
		return false, nil
	}
	node, err := index.FindObject[corev1.Node](ctx, r.Client, index.ClusterScopedKey(pod.Spec.NodeName))
	return node != nil && !nodes.IsVirtual(node), err
}

// observeClaim observes a claim. It returns nil if Xylem does not provision it.
func (r *Reconciler) observeClaim(ctx context.Context, key types.NamespacedName) (*observedClaim, error) {
	claim, err := index.FindObject[corev1.PersistentVolumeClaim](ctx, r.Client, key)
	if err != nil || claim == nil {
		return nil, err
	}
	c := &observedClaim{claim: claim}
	name := claim.Spec.VolumeName
	if name != "" {
		if c.volume, err = index.FindObject[corev1.PersistentVolume](ctx, r.Client, index.ClusterScopedKey(name)); err != nil {
			return nil, err
		}
	}
	if c.volume != nil {
		_, _, _, ours := hostpv.LeafOfHostVolume(c.volume)
		if _, _, asks := hostpv.RequestedImport(c.volume); !ours && !asks && !hostpv.IsPromise(c.volume) {
			return nil, nil
		}
		return c, nil
	}
	class, err := index.FindObject[storagev1.StorageClass](ctx, r.Client, index.ClusterScopedKey(hostpv.ClassNameOf(claim)))
	if err != nil || !hostpv.IsXylemClass(class) {
		return nil, err
	}
	if name != "" { // its volume does not exist, or is not in the cache yet
		if report.ClaimConditionProblem(claim, v1alpha1.ClaimPlaceable) == nil && report.ClaimConditionProblem(claim, v1alpha1.ClaimPlaced) == nil {
			return nil, nil
		}
		return c, nil
	}
	if hostpv.IsMirrorClass(class) {
		c.class = class
		if record, recorded := mirror.DataSourceRecordOf(claim); recorded {
			c.sourceClusterID = record.ClusterID
		}
	}
	return c, nil
}

// podToRequest enqueues a Pod that is not on a virtual node or still reports a problem, if it has claims or if
// rules exclude virtual nodes.
func (r *Reconciler) podToRequest(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || len(podspec.ClaimNamesOfPod(pod)) == 0 && len(excludingRules(pod)) == 0 && lastShownCondition(pod) == nil || !r.mayNeedReport(ctx, pod) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(pod)}}
}

// mayNeedReport reports whether a problem of the Pod may have to be reported or removed.
func (r *Reconciler) mayNeedReport(ctx context.Context, pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" || lastShownCondition(pod) != nil {
		return true
	}
	onHost, err := r.isOnHostNode(ctx, pod)
	return err != nil || onHost
}

// claimToPods enqueues the Pods that wait for a claim or cannot reach its volume.
func (r *Reconciler) claimToPods(ctx context.Context, obj client.Object) []reconcile.Request {
	pods, err := index.PodsOfClaim(ctx, r.Client, client.ObjectKeyFromObject(obj))
	return route.RequestsFor(ctx, pods, err, func(pod *corev1.Pod) bool { return r.mayNeedReport(ctx, pod) })
}

// objectToWaitingPods enqueues all Pods that wait.
func (r *Reconciler) objectToWaitingPods(context.Context, client.Object) []reconcile.Request {
	var requests []reconcile.Request
	r.waitingPods.Range(func(key, _ any) bool {
		if name, ok := key.(types.NamespacedName); ok {
			requests = append(requests, reconcile.Request{NamespacedName: name})
		}
		return true
	})
	return requests
}

// changedForPods reports whether a Node changed in a way that may affect which Pods it
// accepts.
func changedForPods(before, after client.Object) bool {
	was, known := before.(*corev1.Node)
	is, ok := after.(*corev1.Node)
	if !known || !ok {
		return true
	}
	return nodes.IsVirtual(is) && (nodes.MemberAway(was) != nodes.MemberAway(is) || nodes.AcceptsNoPods(was) != nodes.AcceptsNoPods(is) ||
		!equality.Semantic.DeepEqual(nodes.FindCondition(was, v1alpha1.NodeCSINode), nodes.FindCondition(is, v1alpha1.NodeCSINode)) ||
		was.Spec.Unschedulable != is.Spec.Unschedulable ||
		!equality.Semantic.DeepEqual(was.Spec.Taints, is.Spec.Taints) || !equality.Semantic.DeepEqual(was.Labels, is.Labels))
}
