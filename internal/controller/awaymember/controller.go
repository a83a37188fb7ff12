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
	"github.com/xylem-io/xylem/internal/guarded/settling"
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
	State(name string) (fleet.State, bool)
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

	root *guarded.Root
	news *news.News // about Pods, by UID
}

// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *PodReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.root = guarded.NewRoot(r.Client, "", guarded.HostOnly{})
	r.news = news.New(r.Clock)
	return ctrl.NewControllerManagedBy(mgr).
		Named(PodName).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.ofNode), builder.WithPredicates(route.Concerning(route.Of(nodes.Away)))).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.ofPod)).
		WithEventFilter(route.Changed()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(settling.Reconciler(r))
}

// Reconcile reconciles one Pod.
func (r *PodReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.observe(ctx, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decide(o)
	switch {
	case d.message == "":
		return reconcile.Result{}, nil
	case !d.mark:
		return reconcile.Result{RequeueAfter: r.warn(o, d.message)}, nil
	}
	err = r.root.ApplyStatus(ctx, podActor, o.pod, report.PodCondition(o.pod, corev1.PodReady, corev1.ConditionFalse, v1alpha1.ReasonMemberAway, d.message, r.Clock.Now()))
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.eventAway(o.pod, "MarkNotReady", d.message)
	return reconcile.Result{}, nil
}

func (r *PodReconciler) observe(ctx context.Context, request reconcile.Request) (observed, error) {
	var o observed
	var err error
	if o.pod, err = index.Find[corev1.Pod](ctx, r.Client, request.NamespacedName); err != nil || o.pod == nil || o.pod.Spec.NodeName == "" {
		return o, err
	}
	if o.node, err = index.Find[corev1.Node](ctx, r.Client, index.Named(o.pod.Spec.NodeName)); err != nil || o.node == nil {
		return o, err
	}
	state, _ := r.Fleet.State(o.node.Labels[v1alpha1.LabelCluster])
	o.linked = state.Connected
	return o, nil
}

// ofNode enqueues the Pods on a Node whose member is away.
func (r *PodReconciler) ofNode(ctx context.Context, obj client.Object) []reconcile.Request {
	node, ok := obj.(*corev1.Node)
	if !ok || !nodes.IsVirtual(node) || !nodes.Away(node) {
		return nil
	}
	pods, err := index.PodsOnNode(ctx, r.Client, node.Name)
	return route.RequestsFor(ctx, pods, err, nil)
}

// ofPod enqueues a Pod on the Node of an away member if the Pod does not report yet that the member is
// away.
func (r *PodReconciler) ofPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || podstatus.Finished(pod) || !unreported(pod) {
		return nil
	}
	node, err := index.Find[corev1.Node](ctx, r.Client, index.Named(pod.Spec.NodeName))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(fmt.Errorf("read node %s: %w", pod.Spec.NodeName, err), "could not read the Node of a Pod")
		return nil
	}
	if node == nil || !nodes.Away(node) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(pod)}}
}
