package route

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// DelayedHandler enqueues an object's requests after a delay, so that many changes cause one reconcile.
func DelayedHandler(pause time.Duration, requests handler.MapFunc) handler.EventHandler {
	return PacedHandler(func(_, _ client.Object) time.Duration { return pause }, requests)
}

// PacedHandler enqueues the requests for a change after a delay, which pause computes from the states
// before and after the change. A state is nil before creation and after deletion. A delay of 0
// means immediately.
func PacedHandler(pause func(before, after client.Object) time.Duration, requests handler.MapFunc) handler.EventHandler {
	add := func(ctx context.Context, q queue, before, after client.Object) {
		wait := pause(before, after)
		for _, state := range []client.Object{before, after} {
			if state == nil {
				continue
			}
			for _, request := range requests(ctx, state) {
				q.AddAfter(request, wait)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, nil) },
	}
}

// SoonerDelay returns the smaller of two delays. 0 means that there is none.
func SoonerDelay(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
