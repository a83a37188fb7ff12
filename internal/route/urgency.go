package route

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// UrgentFunc reports whether an event must be handled immediately. A state is nil before a creation and
// after a deletion.
type UrgentFunc func(ctx context.Context, before, after client.Object) bool

// CreatedOrDeleted is a UrgentFunc for creations and deletions.
func CreatedOrDeleted(_ context.Context, before, after client.Object) bool {
	return before == nil || after == nil
}

// IsDeletion is a UrgentFunc for deletions.
func IsDeletion(_ context.Context, _, after client.Object) bool { return after == nil }

// WhenValueChanged returns a UrgentFunc for events that change the value that look returns. Without an object, the
// value is zero.
func WhenValueChanged[T client.Object, V comparable](look func(T) V) UrgentFunc {
	value := func(obj client.Object) (v V) {
		if o, ok := obj.(T); ok {
			v = look(o)
		}
		return v
	}
	return func(_ context.Context, before, after client.Object) bool { return value(before) != value(after) }
}

// NeverUrgent reports that no event is urgent.
func NeverUrgent(context.Context, client.Object, client.Object) bool { return false }

// DelayUnlessUrgent delays the events of a source that uses Enqueue or EnqueueHandler by LowUrgencyDelay, unless they are
// urgent. No provisioning step waits for a delayed event.
func DelayUnlessUrgent(urgent UrgentFunc, from source.Source) source.Source {
	return delayedSource{from, urgent}
}

type delayedSource struct {
	source.Source
	urgent UrgentFunc
}

func (u delayedSource) Start(ctx context.Context, q queue) error {
	return u.Source.Start(ctx, delayedQueue{q, u.urgent}) //nolint:wrapcheck // the source's own
}

// WaitForSync waits for a source that fills its queue in the background.
func (u delayedSource) WaitForSync(ctx context.Context) error {
	if syncing, ok := u.Source.(source.SyncingSource); ok {
		return syncing.WaitForSync(ctx) //nolint:wrapcheck // the source's own
	}
	return nil
}

// delayedQueue is the queue for an unhurried source.
type delayedQueue struct {
	queue
	urgent UrgentFunc
}

// EnqueueStates adds the requests for an object's states before and after an event immediately, or after
// Lull if the queue belongs to an unhurried source and the event is not urgent.
func EnqueueStates(ctx context.Context, q queue, before, after client.Object, requests func(context.Context, client.Object) []reconcile.Request) {
	to := q.Add
	if h, unhurried := q.(delayedQueue); unhurried && !h.urgent(ctx, before, after) {
		to = func(request reconcile.Request) { q.AddAfter(request, LowUrgencyDelay) }
	}
	for _, state := range []client.Object{before, after} {
		if state == nil {
			continue
		}
		for _, request := range requests(ctx, state) {
			to(request)
		}
	}
}

// EnqueueHandler enqueues the requests for an object's states before and after an event.
func EnqueueHandler(requests func(context.Context, client.Object) []reconcile.Request) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			EnqueueStates(ctx, q, nil, e.Object, requests)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			EnqueueStates(ctx, q, e.ObjectOld, e.ObjectNew, requests)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			EnqueueStates(ctx, q, e.Object, nil, requests)
		},
	}
}
