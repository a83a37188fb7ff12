package rootconfig

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/refs"
)

// leafPods enqueues the roots that a leaf Pod refers to when it is created or deleted. A Pod's
// references never change.
func (r *reconciler[T]) leafPods() source.Source {
	return source.Kind[client.Object](r.Cache, &corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.ofLeafPod),
		predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
}

func (r *reconciler[T]) ofLeafPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, request := range r.requests(pod.Namespace, refs.Of(pod)) { // a leaf Pod refers to copies, so these are their names
		copied, found, err := r.get(ctx, r.Cache, request.NamespacedName)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "could not look up a copy that a leaf Pod refers to")
		}
		if found {
			requests = append(requests, r.ofCopy(ctx, copied)...)
		}
	}
	return requests
}

// ofCopy enqueues a copy's root.
func (r *reconciler[T]) ofCopy(_ context.Context, obj client.Object) []reconcile.Request {
	origin, stamped := mirror.OriginIn(r.HostID, obj)
	if !stamped {
		return nil
	}
	return []reconcile.Request{{NamespacedName: origin.Root}}
}

// ofRootPod enqueues the objects that a host Pod refers to. It skips objects that were already read
// for this Pod, so that changes to the Pod's status enqueue nothing.
func (r *reconciler[T]) ofRootPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	all := r.references(pod)
	if len(all) == 0 {
		return nil
	}
	uses, err := r.uses(ctx, pod)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not determine whether a Pod needs the objects it refers to")
		return all
	}
	if !uses {
		return all
	}
	var changed []reconcile.Request
	for _, request := range all {
		if !r.reading(request.NamespacedName).users.Has(pod.UID) {
			changed = append(changed, request)
		}
	}
	return changed
}

// ofClaim enqueues the objects that a claim's Pods refer to, if these Pods may be pushed early.
func (r *reconciler[T]) ofClaim(ctx context.Context, claim client.Object) []reconcile.Request {
	pods, err := index.PodsOfClaim(ctx, r.Host, client.ObjectKeyFromObject(claim))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the Pods of a claim")
		return nil
	}
	var requests []reconcile.Request
	for i := range pods {
		if useOf(&pods[i], r.Member) == usedEarly {
			requests = append(requests, r.ofRootPod(ctx, &pods[i])...)
		}
	}
	return requests
}

// inNamespace enqueues the objects that a namespace's Pods refer to, because the
// namespace may have become usable in the member or visible in the host.
func (r *reconciler[T]) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	var pods corev1.PodList
	if err := r.Host.List(ctx, &pods, client.InNamespace(namespace.GetName()), index.ReadOnly); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not list the namespace's Pods", "namespace", namespace.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		if useOf(&pods.Items[i], r.Member) != unused {
			requests = append(requests, r.references(&pods.Items[i])...)
		}
	}
	return requests
}

// references returns the requests for the objects of this kind that a host Pod refers to. It returns
// none if the Pod has too many references, because such a Pod is not pushed.
func (r *reconciler[T]) references(pod *corev1.Pod) []reconcile.Request {
	all, _ := refs.Bounded(pod)
	return r.requests(pod.Namespace, all)
}

func (r *reconciler[T]) requests(namespace string, all []refs.Reference) []reconcile.Request {
	var requests []reconcile.Request
	for _, ref := range all {
		if ref.Kind == r.kind.reference {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: ref.Name}})
		}
	}
	return requests
}
