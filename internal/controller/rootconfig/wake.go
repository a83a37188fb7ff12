package rootconfig

import (
	"context"
	"slices"

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
func (r *reconciler) leafPods() source.Source {
	return source.Kind[client.Object](r.Cache, &corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.ofLeafPod),
		predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
}

func (r *reconciler) ofLeafPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, ref := range refs.Of(pod) { // a leaf Pod refers to copies, so these are their names
		copied, err := r.copyNamed(ctx, ref.Kind, types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "could not look up a copy that a leaf Pod refers to")
		}
		requests = append(requests, r.ofCopy(ctx, copied)...)
	}
	return requests
}

// copyNamed returns the object of this kind and name in the member's cache. It is empty if there is none.
func (r *reconciler) copyNamed(ctx context.Context, kind string, key types.NamespacedName) (client.Object, error) {
	if kind == refs.KindSecret {
		secret, _, err := r.secrets.get(ctx, r.Cache, key)
		return secret, err
	}
	configMap, _, err := r.configMaps.get(ctx, r.Cache, key)
	return configMap, err
}

// ofCopy enqueues a copy's root.
func (r *reconciler) ofCopy(_ context.Context, obj client.Object) []reconcile.Request {
	origin, stamped := mirror.OriginIn(r.HostID, obj)
	if !stamped {
		return nil
	}
	return []reconcile.Request{{NamespacedName: origin.Root}}
}

// ofRootPod enqueues the objects that a host Pod refers to. It skips objects that were already read
// for this Pod, so that changes to the Pod's status enqueue nothing.
func (r *reconciler) ofRootPod(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	all, _ := refs.Bounded(pod)
	if len(all) == 0 {
		return nil
	}
	uses, err := usesCopies(ctx, r.Link, pod)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not determine whether a Pod needs the objects it refers to")
	}
	if err == nil && uses {
		all = slices.DeleteFunc(all, func(ref refs.Reference) bool { return r.wasReadFor(pod, ref) })
	}
	return requestsFor(pod.Namespace, all)
}

// wasReadFor reports whether an object that a host Pod refers to was already read for this Pod.
func (r *reconciler) wasReadFor(pod *corev1.Pod, ref refs.Reference) bool {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name}
	if ref.Kind == refs.KindSecret {
		return r.secrets.reading(key).users.Has(pod.UID)
	}
	return r.configMaps.reading(key).users.Has(pod.UID)
}

// ofClaim enqueues the objects that a claim's Pods refer to, if these Pods may be pushed early.
func (r *reconciler) ofClaim(ctx context.Context, claim client.Object) []reconcile.Request {
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
func (r *reconciler) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	var pods corev1.PodList
	if err := r.Host.List(ctx, &pods, client.InNamespace(namespace.GetName()), index.ReadOnly); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not list the namespace's Pods", "namespace", namespace.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		if useOf(&pods.Items[i], r.Member) != unused {
			requests = append(requests, referencesOf(&pods.Items[i])...)
		}
	}
	return requests
}

// referencesOf returns the requests for the objects that a host Pod refers to. It returns none if the Pod has too many
// references, because such a Pod is not pushed.
func referencesOf(pod *corev1.Pod) []reconcile.Request {
	all, _ := refs.Bounded(pod)
	return requestsFor(pod.Namespace, all)
}

func requestsFor(namespace string, all []refs.Reference) []reconcile.Request {
	var requests []reconcile.Request
	for _, ref := range all {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: ref.Name}})
	}
	return requests
}
