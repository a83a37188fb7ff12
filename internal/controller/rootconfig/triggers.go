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

// leafPodSource enqueues the roots that a leaf Pod refers to when it is created or deleted. A Pod's
// references never change.
func (r *reconciler) leafPodSource() source.Source {
	return source.Kind[client.Object](r.Cache, &corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.leafPodToRoots),
		predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
}

func (r *reconciler) leafPodToRoots(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, ref := range refs.ReferencesOfPod(pod) { // a leaf Pod refers to copies, so these are their names
		if _, is := mirror.PodOfTokenSecret(ref.Name); is {
			key := types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name}
			if refersToTokens(pod, ref.Name) {
				r.tokens.podTokens.podNames.Store(key, pod.Name)
			}
			requests = append(requests, reconcile.Request{NamespacedName: key})
			continue
		}
		copied, err := r.copyNamed(ctx, ref.Kind, types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "could not look up a copy that a leaf Pod refers to")
		}
		requests = append(requests, r.copyToRoot(ctx, copied)...)
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

// copyToRoot enqueues a copy's root.
func (r *reconciler) copyToRoot(_ context.Context, obj client.Object) []reconcile.Request {
	origin, stamped := mirror.LeafOriginFromHost(r.HostID, obj)
	if !stamped {
		return nil
	}
	return []reconcile.Request{{NamespacedName: origin.Root}}
}

// rootPodToReferences enqueues the objects that a host Pod refers to. It skips objects that were already read
// for this Pod, so that changes to the Pod's status enqueue nothing.
func (r *reconciler) rootPodToReferences(ctx context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	tokens := r.requestOfPod(pod)
	all, _ := refs.BoundedReferencesOf(pod)
	if len(all) == 0 {
		return tokens
	}
	uses, err := usesCopies(ctx, r.Link, pod)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not determine whether a Pod needs the objects it refers to")
	}
	if err == nil && uses {
		all = slices.DeleteFunc(all, func(ref refs.Reference) bool { return r.wasReadFor(pod, ref) })
	}
	return append(tokens, requestsFor(pod.Namespace, all)...)
}

// wasReadFor reports whether an object that a host Pod refers to was already read for this Pod.
func (r *reconciler) wasReadFor(pod *corev1.Pod, ref refs.Reference) bool {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name}
	if ref.Kind == refs.KindSecret {
		return r.secrets.reading(key).users.Has(pod.UID)
	}
	return r.configMaps.reading(key).users.Has(pod.UID)
}

// claimToReferences enqueues the objects that a claim's Pods refer to, if these Pods may be pushed early.
func (r *reconciler) claimToReferences(ctx context.Context, claim client.Object) []reconcile.Request {
	pods, err := index.PodsOfClaim(ctx, r.Host, client.ObjectKeyFromObject(claim))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the Pods of a claim")
		return nil
	}
	var requests []reconcile.Request
	for i := range pods {
		if podUseOf(&pods[i], r.Member) == copiesUsedEarly {
			requests = append(requests, r.rootPodToReferences(ctx, &pods[i])...)
		}
	}
	return requests
}

// namespaceToReferences enqueues the objects that a namespace's Pods refer to, because the
// namespace may have become usable in the member or visible in the host.
func (r *reconciler) namespaceToReferences(ctx context.Context, namespace client.Object) []reconcile.Request {
	var pods corev1.PodList
	if err := r.Host.List(ctx, &pods, client.InNamespace(namespace.GetName()), index.ReadOnly); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not list the namespace's Pods", "namespace", namespace.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		if podUseOf(&pods.Items[i], r.Member) != copiesUnused {
			requests = append(append(requests, referencesOf(&pods.Items[i])...), r.requestOfPod(&pods.Items[i])...)
		}
	}
	return requests
}

// referencesOf returns the requests for the objects that a host Pod refers to. It returns none if the Pod has too many
// references, because such a Pod is not pushed.
func referencesOf(pod *corev1.Pod) []reconcile.Request {
	all, _ := refs.BoundedReferencesOf(pod)
	return requestsFor(pod.Namespace, all)
}

func requestsFor(namespace string, all []refs.Reference) []reconcile.Request {
	var requests []reconcile.Request
	for _, ref := range all {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: ref.Name}})
	}
	return requests
}
