package route

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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
