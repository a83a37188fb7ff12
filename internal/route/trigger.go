package route

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Trigger is a source of requests that do not come from an object's event. The zero value is
// ready for use.
type Trigger struct {
	mu     sync.Mutex
	queues map[queue]func(name string)
}

// RequestsByName maps a name to the requests to enqueue.
type RequestsByName func(ctx context.Context, name string) []reconcile.Request

// NamesSource returns a source that enqueues requests with the given names in a controller's queue,
// until its context ends.
func (w *Trigger) NamesSource() source.Source {
	return w.RequestsSource(func(_ context.Context, name string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})
}

// RequestsSource returns a source that enqueues the requests for the given names.
func (w *Trigger) RequestsSource(requests RequestsByName) source.Source {
	return w.SourceAfterDelay(0, requests)
}

// SourceAfterDelay is RequestsSource, and enqueues the requests after a delay.
func (w *Trigger) SourceAfterDelay(pause time.Duration, requests RequestsByName) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.queues == nil {
			w.queues = map[queue]func(string){}
		}
		w.queues[q] = func(name string) {
			for _, request := range requests(ctx, name) {
				q.AddAfter(request, pause)
			}
		}
		context.AfterFunc(ctx, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.queues, q)
		})
		return nil
	})
}

// Enqueue enqueues the requests for a name in all queues.
func (w *Trigger) Enqueue(name string) {
	w.mu.Lock()
	queues := maps.Clone(w.queues)
	w.mu.Unlock()
	for _, enqueue := range queues {
		enqueue(name)
	}
}
