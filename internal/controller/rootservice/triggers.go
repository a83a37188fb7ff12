package rootservice

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/route"
)

// serviceSources returns the sources that show whether a Service must exist in the member.
func (r *reconciler) serviceSources() []source.Source {
	placementChanged := route.PartChanged(func(pod *corev1.Pod) podPlacement {
		return podPlacement{pod.UID, runsInMember(pod, r.NodeName)}
	})
	return []source.Source{
		r.RootObjectSource(&corev1.Service{}, r.serviceToRequest),
		route.DelayUnlessUrgent(route.CreatedOrDeleted, r.RootObjectSource(&corev1.Pod{}, r.podToServices, placementChanged)),
		r.RootObjectSource(&corev1.Namespace{}, r.namespaceToServices, route.LabelsChanged),
		r.LeafObjectSource(&corev1.Namespace{}, r.namespaceToServices),
		r.LeafObjectSource(&corev1.Pod{}, r.podToServices, existenceChanged),
		r.LeafObjectSource(&corev1.PersistentVolumeClaim{}, r.claimToServices, existenceChanged),
		r.LeafServiceSource(&corev1.Service{}, member.RequestOfSameKey),
		r.Services.ProblemChangeSource(r.allServices),
	}
}

// endpointSources returns the sources of EndpointSlices. Those of the host are watched only if the member's Pods can
// reach addresses elsewhere.
func (r *reconciler) endpointSources() []source.Source {
	sources := []source.Source{r.LeafServiceSource(&discoveryv1.EndpointSlice{}, sliceToService)}
	if len(r.Reachable) > 0 {
		sources = append(sources, r.Router.OnDemandSource(r.RouteOwner(), &discoveryv1.EndpointSlice{}, index.SetupSliceIndex, r.rootSliceToService))
	}
	return sources
}

// podPlacement contains the fields of a Pod that determine whether it runs in the member.
type podPlacement struct {
	uid  types.UID
	runs bool
}

// existenceChanged ignores updates of a leaf, because they do not change whether its namespace is used.
var existenceChanged = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// isNamespaceShared reports whether the member has a namespace for leaves of this host.
func (r *reconciler) isNamespaceShared(ctx context.Context, name string) bool {
	namespace, err := index.FindObject[corev1.Namespace](ctx, r.Cache, index.ClusterScopedKey(name))
	return err != nil || namespace != nil && namespace.Labels[v1alpha1.LabelHost] == r.HostID
}

// serviceToRequest enqueues a Service in a namespace that the member has.
func (r *reconciler) serviceToRequest(ctx context.Context, service client.Object) []reconcile.Request {
	if !r.isNamespaceShared(ctx, service.GetNamespace()) {
		return nil
	}
	return member.RequestOfSameKey(ctx, service)
}

// sliceToService enqueues the Service of an EndpointSlice.
func sliceToService(_ context.Context, slice client.Object) []reconcile.Request {
	name := slice.GetLabels()[discoveryv1.LabelServiceName]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: slice.GetNamespace(), Name: name}}}
}

// rootSliceToService enqueues the Service of an EndpointSlice in a namespace that the member has.
func (r *reconciler) rootSliceToService(ctx context.Context, slice client.Object) []reconcile.Request {
	if !r.isNamespaceShared(ctx, slice.GetNamespace()) {
		return nil
	}
	return sliceToService(ctx, slice)
}

// namespaceToServices enqueues the Services of a namespace that the member has.
func (r *reconciler) namespaceToServices(ctx context.Context, namespace client.Object) []reconcile.Request {
	if !r.isNamespaceShared(ctx, namespace.GetName()) {
		return nil
	}
	var services corev1.ServiceList
	err := r.Host.List(ctx, &services, client.InNamespace(namespace.GetName()), index.ReadOnly)
	return route.RequestsFor(ctx, services.Items, err, nil)
}

// allServices enqueues the Services of all namespaces that the member has.
func (r *reconciler) allServices(ctx context.Context, _ string) []reconcile.Request {
	var namespaces corev1.NamespaceList
	if err := r.Cache.List(ctx, &namespaces, client.MatchingLabels{v1alpha1.LabelHost: r.HostID}, index.ReadOnly); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not list the member's namespaces")
		return nil
	}
	var requests []reconcile.Request
	for i := range namespaces.Items {
		requests = append(requests, r.namespaceToServices(ctx, &namespaces.Items[i])...)
	}
	return requests
}

// podToServices enqueues the Services that a root or leaf Pod may concern: those without a leaf, those about which
// an event is due, and all of an unused namespace.
func (r *reconciler) podToServices(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	return r.servicesOf(ctx, pod.Namespace, func(service *corev1.Service) bool {
		return runsInMember(pod, r.NodeName) && matchesPod(service, pod) && r.news.DueIn(topic{service.UID, podInMember}, nil) == 0
	})
}

// claimToServices enqueues the Services that a leaf claim may concern.
func (r *reconciler) claimToServices(ctx context.Context, claim client.Object) []reconcile.Request {
	return r.servicesOf(ctx, claim.GetNamespace(), func(*corev1.Service) bool { return false })
}

// servicesOf enqueues the Services of a namespace that lack a leaf, all of them if the namespace is unused, and those
// that concerned accepts.
func (r *reconciler) servicesOf(ctx context.Context, namespace string, concerned func(*corev1.Service) bool) []reconcile.Request {
	used, err := r.isNamespaceUsed(ctx, namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up whether a namespace is used", "namespace", namespace)
	}
	var services corev1.ServiceList
	err = r.Host.List(ctx, &services, client.InNamespace(namespace), index.ReadOnly)
	r.unused.Measure(namespace, !used)
	return route.RequestsFor(ctx, services.Items, err, func(service *corev1.Service) bool {
		if concerned(service) {
			return true
		}
		if used && !r.lacksLeaf(ctx, client.ObjectKeyFromObject(service)) {
			return false
		}
		want, _ := wantedService(service, r.Member)
		return want != nil
	})
}

func (r *reconciler) lacksLeaf(ctx context.Context, key types.NamespacedName) bool {
	leaves := r.LeafServiceCache()
	if leaves == nil {
		return false
	}
	// A pause of the namespace does not matter: a Service that was not reconciled in it would otherwise never be.
	if rest, _ := r.paused.remaining(pausedName{false, key}); rest > 0 {
		return false // the Service is reconciled at the end of the pause
	}
	leaf, err := index.FindObject[corev1.Service](ctx, leaves, key)
	return err == nil && leaf == nil
}
