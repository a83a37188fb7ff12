package hostservice

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
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
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/news"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/route"
)

// Name is the name of the controller.
const Name = "host_service"

// Reconciler warns about Services whose Pods run in members.
type Reconciler struct {
	// Client reads the host's cache.
	Client client.Reader
	// Recorder emits events on Services.
	Recorder events.EventRecorder

	news *news.StateMemory // about Services, by UID
}

// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.xylem.io,resources=clusterregistrations,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.news = news.New(clock.RealClock{})
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&corev1.Service{}, &handler.EnqueueRequestForObject{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.podToRequests), builder.WithPredicates(route.ConcernsPredicate(route.PartChanged(podPlacementOf)))).
		WithEventFilter(route.ChangedPredicate()).
		Complete(guarded.WrapReconciler(r))
}

// Reconcile checks one Service.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	service, err := index.FindObject[corev1.Service](ctx, r.Client, request.NamespacedName)
	if err != nil || service == nil || !hasSelector(service) {
		return reconcile.Result{}, err
	}
	if again := r.news.DueIn(service.UID, nil); again > 0 {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	pod, registration, err := r.findPodInMember(ctx, service)
	if err != nil || registration == nil {
		return reconcile.Result{}, err
	}
	due, again := r.news.EventDue(service.UID, nil)
	if due {
		r.emitEndpointInMember(service, pod, registration)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// findPodInMember returns a Pod of the Service that runs in a member, and the member's registration.
// Both are nil if no such Pod exists.
func (r *Reconciler) findPodInMember(ctx context.Context, service *corev1.Service) (*corev1.Pod, *v1alpha1.ClusterRegistration, error) {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector), index.ReadOnly); err != nil {
		return nil, nil, fmt.Errorf("list the Pods of Service %s/%s: %w", service.Namespace, service.Name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || podstatus.IsPodFinished(pod) {
			continue
		}
		node, err := index.FindObject[corev1.Node](ctx, r.Client, index.ClusterScopedKey(pod.Spec.NodeName))
		if err != nil {
			return nil, nil, err
		}
		if node == nil || !nodes.IsVirtual(node) {
			continue
		}
		registration, err := index.FindObject[v1alpha1.ClusterRegistration](ctx, r.Client, index.ClusterScopedKey(node.Labels[v1alpha1.LabelCluster]))
		if err != nil || registration != nil {
			return pod, registration, err
		}
	}
	return nil, nil, nil
}

// podToRequests enqueues the Services that select a Pod on a virtual node.
func (r *Reconciler) podToRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	node, err := index.FindObject[corev1.Node](ctx, r.Client, index.ClusterScopedKey(pod.Spec.NodeName))
	if err != nil || node == nil || !nodes.IsVirtual(node) {
		return nil
	}
	var services corev1.ServiceList
	err = r.Client.List(ctx, &services, client.InNamespace(pod.Namespace), index.ReadOnly)
	return route.RequestsFor(ctx, services.Items, err, func(service *corev1.Service) bool {
		return r.news.DueIn(service.UID, nil) == 0 && hasSelector(service) && labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
	})
}

// hasSelector reports whether a Service derives its endpoints from a selector.
func hasSelector(service *corev1.Service) bool {
	return len(service.Spec.Selector) > 0 && service.Spec.Type != corev1.ServiceTypeExternalName
}

// podPlacement contains the fields of a Pod that determine whether it runs in a member.
type podPlacement struct {
	uid  types.UID
	node string
}

func podPlacementOf(pod *corev1.Pod) podPlacement { return podPlacement{pod.UID, pod.Spec.NodeName} }
