package route

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// RequestsFor returns requests for the found objects that concerned accepts, or for all of them if
// concerned is nil. It logs the lookup's error, because a handler cannot return it.
func RequestsFor[T any, P interface {
	*T
	client.Object
}](ctx context.Context, found []T, err error, concerned func(P) bool) []reconcile.Request {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not look up the objects that an event concerns")
	}
	requests := make([]reconcile.Request, 0, len(found))
	for i := range found {
		if obj := P(&found[i]); concerned == nil || concerned(obj) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		}
	}
	return requests
}

// EnqueueItselfIf returns a map function that enqueues an object that has a property.
func EnqueueItselfIf[T client.Object](has func(T) bool) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []reconcile.Request {
		if typed, ok := obj.(T); !ok || !has(typed) {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	}
}

// ClaimRequestsOf returns requests for the claims of a Pod.
func ClaimRequestsOf(pod *corev1.Pod) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range podspec.ClaimNamesOfPod(pod) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}})
	}
	return requests
}
