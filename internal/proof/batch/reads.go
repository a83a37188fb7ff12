package batch

import (
	"context"
	"fmt"
	"sync"
)

// Reads shares the reads of what each key names. The zero value is ready to use. A nil Reads shares
// nothing.
type Reads[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]*queue[V] // only keys with callers
}

// queue contains the callers for one key.
type queue[V any] struct {
	reading chan struct{} // holds a token while a read is in flight
	callers int           // guarded by Reads.mu
	begun   int           // reads; guarded by Reads.mu

	// The result of the last read, unless its caller's context ended. Guarded by reading.
	value  V
	err    error
	shared bool
}

// Do returns the result of a read that begins after the call, and that this or another caller makes. Callers
// must not change the result. If the context of the caller that reads ends, another caller reads instead.
func (r *Reads[K, V]) Do(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	if r == nil {
		return read(ctx)
	}
	q, asked := r.enter(key)
	defer r.leave(key, q)
	select {
	case q.reading <- struct{}{}:
		defer func() { <-q.reading }()
	case <-ctx.Done():
		var none V
		return none, fmt.Errorf("wait for a shared read: %w", ctx.Err())
	}
	if r.unread(q, asked) {
		q.value, q.err = read(ctx)
		q.shared = ctx.Err() == nil
	}
	return q.value, q.err
}

// enter adds a caller, and returns the number of reads that have begun.
func (r *Reads[K, V]) enter(key K) (*queue[V], int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.of[key]
	if q == nil {
		q = &queue[V]{reading: make(chan struct{}, 1)}
		if r.of == nil {
			r.of = map[K]*queue[V]{}
		}
		r.of[key] = q
	}
	q.callers++
	return q, q.begun
}

// leave removes a caller, and with the last one, the result.
func (r *Reads[K, V]) leave(key K, q *queue[V]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.callers--; q.callers == 0 {
		delete(r.of, key)
	}
}

// unread reports whether the caller that may read must do so, because no read that it can share has begun
// since it asked.
func (r *Reads[K, V]) unread(q *queue[V], asked int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.begun > asked && q.shared {
		return false
	}
	q.begun++
	q.shared = false // in case the read panics
	return true
}
