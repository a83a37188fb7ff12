package urgency

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

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
