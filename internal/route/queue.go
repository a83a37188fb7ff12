package route

import (
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// LowUrgencyDelay is the maximum delay for an event that is not urgent. Binding a claim takes about twenty
// writes by six programs, most of them within this time.
const LowUrgencyDelay = 250 * time.Millisecond

// innerQueueLimit is the number of requests in the inner queue up to which delayed requests are added to it. After a
// start, all volumes are delayed, and the inner queue would never free the memory for them. The alert on queues
// that do not drain needs more than 100.
const innerQueueLimit = 200

// Queue delays requests that are added with delay LowUrgencyDelay. If the same request is reconciled earlier,
// the delayed request is dropped, because that reconcile reads the new state. So many events cause
// one reconcile.
type Queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	clock clock.WithDelayedExecution

	mu sync.Mutex
	// delayed contains the delayed requests, and due those that were delayed long enough.
	delayed, due map[reconcile.Request]struct{}
}

// NewQueue wraps another queue.
func NewQueue(inner workqueue.TypedRateLimitingInterface[reconcile.Request], c clock.WithDelayedExecution) *Queue {
	return &Queue{TypedRateLimitingInterface: inner, clock: c, delayed: map[reconcile.Request]struct{}{}}
}

// AddAfter adds a request after a delay. With delay LowUrgencyDelay, it adds the request together with all
// other delayed requests, as soon as the inner queue is short. Urgent requests do not wait behind them.
func (q *Queue) AddAfter(request reconcile.Request, after time.Duration) {
	if after != LowUrgencyDelay {
		q.TypedRateLimitingInterface.AddAfter(request, after)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.delayed) == 0 {
		q.clock.AfterFunc(LowUrgencyDelay, q.releaseDelayed)
	}
	q.delayed[request] = struct{}{}
}

// Get returns the next request, and drops the same request if it is delayed, because the cache
// contains an object's new state before its event is handled.
func (q *Queue) Get() (request reconcile.Request, shutdown bool) {
	request, shutdown = q.TypedRateLimitingInterface.Get()
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.delayed, request)
	delete(q.due, request)
	q.fillInnerQueue(1)
	return request, shutdown
}

func (q *Queue) releaseDelayed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.due) == 0 {
		q.due = q.delayed
	} else {
		maps.Copy(q.due, q.delayed)
	}
	q.delayed = map[reconcile.Request]struct{}{} // a cleared map would keep its size
	q.fillInnerQueue(0)
}

// fillInnerQueue adds due requests while the inner queue is short, or at least some, so that urgent requests cannot keep them out.
// Each Get calls it, so the inner queue is not empty while requests are due. The caller must hold the lock.
func (q *Queue) fillInnerQueue(atLeast int) {
	for request := range q.due {
		if atLeast--; atLeast < 0 && q.Len() >= innerQueueLimit {
			return
		}
		delete(q.due, request)
		q.Add(request)
	}
	q.due = nil
}
