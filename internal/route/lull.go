package route

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Lull is the maximum delay for an event that is not urgent. Binding a claim takes about twenty
// writes by six programs, most of them within this time.
const Lull = 250 * time.Millisecond

// Queue delays requests that are added with delay Lull. If the same request is reconciled earlier,
// the delayed request is dropped, because that reconcile reads the new state. So many events cause
// one reconcile.
type Queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	clock clock.WithDelayedExecution

	mu   sync.Mutex
	held map[reconcile.Request]struct{}
}

// NewQueue wraps another queue.
func NewQueue(inner workqueue.TypedRateLimitingInterface[reconcile.Request], c clock.WithDelayedExecution) *Queue {
	return &Queue{TypedRateLimitingInterface: inner, clock: c, held: map[reconcile.Request]struct{}{}}
}

// AddAfter adds a request after a delay. With delay Lull, it adds the request together with all
// other delayed requests.
func (q *Queue) AddAfter(request reconcile.Request, after time.Duration) {
	if after != Lull {
		q.TypedRateLimitingInterface.AddAfter(request, after)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.held) == 0 {
		q.clock.AfterFunc(Lull, q.release)
	}
	q.held[request] = struct{}{}
}

// Get returns the next request, and drops the same request if it is delayed, because the cache
// contains an object's new state before its event is handled.
func (q *Queue) Get() (request reconcile.Request, shutdown bool) {
	request, shutdown = q.TypedRateLimitingInterface.Get()
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.held, request)
	return request, shutdown
}

func (q *Queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for request := range q.held {
		q.Add(request)
	}
	q.held = map[reconcile.Request]struct{}{} // a cleared map would keep its size
}

// Urgent reports whether an event must be handled immediately. A state is nil before a creation
// and after a deletion.
type Urgent func(ctx context.Context, before, after client.Object) bool

// CreatedOrDeleted is Urgent for creations and deletions.
func CreatedOrDeleted(_ context.Context, before, after client.Object) bool {
	return before == nil || after == nil
}

// Deleted is Urgent for deletions.
func Deleted(_ context.Context, _, after client.Object) bool { return after == nil }

// WhenChanged is Urgent for events that change the value that look returns. Without an object, the
// value is zero.
func WhenChanged[T client.Object, V comparable](look func(T) V) Urgent {
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

// Unhurried delays the events of one of this package's sources by Lull, unless they are urgent. No
// provisioning step waits for a delayed event.
func Unhurried(urgent Urgent, from source.Source) source.Source { return unhurried{from, urgent} }

type unhurried struct {
	source.Source
	urgent Urgent
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
	urgent Urgent
}

// add adds an event's requests immediately, or after Lull if the queue belongs to an unhurried
// source and the event is not urgent.
func add(ctx context.Context, q queue, before, after client.Object, requests Requests) {
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
func Handler(requests Requests) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, nil, e.Object, requests) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			add(ctx, q, e.ObjectOld, e.ObjectNew, requests)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, nil, requests) },
	}
}
