package route

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// After enqueues what an object wakes after a pause, so that many changes make one
// look.
func After(pause time.Duration, requests handler.MapFunc) handler.EventHandler {
	return Paced(func(client.Object) time.Duration { return pause }, requests)
}

// Paced enqueues what a state of an object wakes after the pause that this state
// gives; at once for 0.
func Paced(pause func(client.Object) time.Duration, requests handler.MapFunc) handler.EventHandler {
	add := func(ctx context.Context, q queue, states ...client.Object) {
		for _, state := range states {
			for _, request := range requests(ctx, state) {
				q.AddAfter(request, pause(state))
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object) },
	}
}
