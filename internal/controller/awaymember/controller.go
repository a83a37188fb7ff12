package awaymember

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/route"
)

const (
	// PodName is the name of the controller of Pods.
	PodName  = "away_pod"
	podActor = guarded.Actor("away-pod")

	// workers is the number of concurrent reconciles. Each makes two cached reads, and one write when
	// a member goes away.
	workers = 2
)

// Fleet returns the members' states.
type Fleet interface {
	MemberState(name string) (fleet.State, bool)
}

// PodReconciler reports on the Pods of away members, and marks them as not ready.
type PodReconciler struct {
	// Client reads the host's cache and writes to the host.
	Client client.Client
	// Fleet returns whether a member is connected.
	Fleet Fleet
	// Recorder emits events on Pods.
	Recorder events.EventRecorder
	// Clock provides the times of conditions.
	Clock clock.PassiveClock

	hostWriter *guarded.HostWriter
	news       *news.StateMemory // about Pods, by UID
}

// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *PodReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.hostWriter = guarded.NewHostWriter(r.Client, "", guarded.HostOnlyGuard{})
	r.news = news.New(r.Clock)
	return ctrl.NewControllerManagedBy(mgr).
		Named(PodName).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.nodeToRequests), builder.WithPredicates(route.ConcernsPredicate(route.PartChanged(nodes.MemberAway)))).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.podToRequests)).
		WithEventFilter(route.ChangedPredicate()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(guarded.WrapReconciler(r))
}

// Reconcile reconciles one Pod.
func (r *PodReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observePod(ctx, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decideAwayReport(o)
	switch {
	case d.message == "":
		return reconcile.Result{}, nil
	case !d.markNotReady:
		return reconcile.Result{RequeueAfter: r.emitAwayWarning(o, d.message)}, nil
	}
	err = r.hostWriter.ApplyStatus(ctx, podActor, o.pod, report.PodConditionApplyBody(o.pod, corev1.PodReady, corev1.ConditionFalse, v1alpha1.ReasonMemberAway, d.message, r.Clock.Now()))
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.emitMemberAway(o.pod, "MarkNotReady", d.message)
	return reconcile.Result{}, nil
}

func (r *PodReconciler) observePod(ctx context.Context, request reconcile.Request) (observed, error) {
	var o observed
	var err error
	if o.pod, err = index.FindObject[corev1.Pod](ctx, r.Client, request.NamespacedName); err != nil || o.pod == nil || o.pod.Spec.NodeName == "" {
		return o, err
	}
	if o.node, err = index.FindObject[corev1.Node](ctx, r.Client, index.ClusterScopedKey(o.pod.Spec.NodeName)); err != nil || o.node == nil {
		return o, err
	}
	state, _ := r.Fleet.MemberState(o.node.Labels[v1alpha1.LabelCluster])
	o.memberConnected = state.Connected
	return o, nil
}

// nodeToRequests enqueues the Pods on a Node whose member is away.
func (r *PodReconciler) nodeToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	node, ok := obj.(*corev1.Node)
	if !ok || !nodes.IsVirtual(node) || !nodes.MemberAway(node) {
		return nil
	}
	pods, err := index.PodsOnNode(ctx, r.Client, node.Name)
	return route.RequestsFor(ctx, pods, err, nil)
}

// podToRequests enqueues a Pod on the Node of an away member if the Pod does not report yet that the member is
// away.
func (r *PodReconciler) podToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || podstatus.IsPodFinished(pod) || !lacksAwayReport(pod) {
		return nil
	}
	node, err := index.FindObject[corev1.Node](ctx, r.Client, index.ClusterScopedKey(pod.Spec.NodeName))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(fmt.Errorf("read node %s: %w", pod.Spec.NodeName, err), "could not read the Node of a Pod")
		return nil
	}
	if node == nil || !nodes.MemberAway(node) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(pod)}}
}
