package urgency

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Func reports whether an event must be handled immediately. A state is nil before a creation and
// after a deletion.
type Func func(ctx context.Context, before, after client.Object) bool

// CreatedOrDeleted is a Func for creations and deletions.
func CreatedOrDeleted(_ context.Context, before, after client.Object) bool {
	return before == nil || after == nil
}

// Deleted is a Func for deletions.
func Deleted(_ context.Context, _, after client.Object) bool { return after == nil }

// WhenChanged returns a Func for events that change the value that look returns. Without an object, the
// value is zero.
func WhenChanged[T client.Object, V comparable](look func(T) V) Func {
	value := func(obj client.Object) (v V) {
		if o, ok := obj.(T); ok {
			v = look(o)
		}
		return v
	}
	return func(_ context.Context, before, after client.Object) bool { return value(before) != value(after) }
}

// Never reports that no event is urgent.
func Never(context.Context, client.Object, client.Object) bool { return false }

// Unhurried delays the events of a source that uses Enqueue or Handler by Lull, unless they are
// urgent. No provisioning step waits for a delayed event.
func Unhurried(urgent Func, from source.Source) source.Source { return unhurried{from, urgent} }

type unhurried struct {
	source.Source
	urgent Func
}

func (u unhurried) Start(ctx context.Context, q queue) error {
	return u.Source.Start(ctx, held{q, u.urgent}) //nolint:wrapcheck // the source's own
}

// WaitForSync waits for a source that fills its queue in the background.
func (u unhurried) WaitForSync(ctx context.Context) error {
	if syncing, ok := u.Source.(source.SyncingSource); ok {
		return syncing.WaitForSync(ctx) //nolint:wrapcheck // the source's own
	}
	return nil
}

// held is the queue for an unhurried source.
type held struct {
	queue
	urgent Func
}

// Enqueue adds the requests for an object's states before and after an event immediately, or after
// Lull if the queue belongs to an unhurried source and the event is not urgent.
func Enqueue(ctx context.Context, q queue, before, after client.Object, requests func(context.Context, client.Object) []reconcile.Request) {
	to := q.Add
	if h, unhurried := q.(held); unhurried && !h.urgent(ctx, before, after) {
		to = func(request reconcile.Request) { q.AddAfter(request, Lull) }
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

// Handler enqueues the requests for an object's states before and after an event.
func Handler(requests func(context.Context, client.Object) []reconcile.Request) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { Enqueue(ctx, q, nil, e.Object, requests) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			Enqueue(ctx, q, e.ObjectOld, e.ObjectNew, requests)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { Enqueue(ctx, q, e.Object, nil, requests) },
	}
}
