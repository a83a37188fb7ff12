package proof

import (
	"context"
	"fmt"
	"sync"
)

// SharedReads shares the reads of what each key names. The zero value is ready to use. A nil SharedReads shares
// nothing.
type SharedReads[K comparable, V any] struct {
	mu    sync.Mutex
	byKey map[K]*readQueue[V] // only keys with callers
}

// readQueue contains the callers for one key.
type readQueue[V any] struct {
	reading chan struct{} // holds a token while a read is in flight
	callers int           // guarded by SharedReads.mu
	begun   int           // reads; guarded by SharedReads.mu

	// The result of the last read, unless its caller's context ended. Guarded by reading.
	value  V
	err    error
	shared bool
}

// Do returns the result of a read that begins after the call, and that this or another caller makes. Callers
// must not change the result. If the context of the caller that reads ends, another caller reads instead.
func (r *SharedReads[K, V]) Do(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	if r == nil {
		return read(ctx)
	}
	q, asked := r.addCaller(key)
	defer r.removeCaller(key, q)
	select {
	case q.reading <- struct{}{}:
		defer func() { <-q.reading }()
	case <-ctx.Done():
		var none V
		return none, fmt.Errorf("wait for a shared read: %w", ctx.Err())
	}
	if r.mustRead(q, asked) {
		q.value, q.err = read(ctx)
		q.shared = ctx.Err() == nil
	}
	return q.value, q.err
}

// addCaller adds a caller, and returns the number of reads that have begun.
func (r *SharedReads[K, V]) addCaller(key K) (*readQueue[V], int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.byKey[key]
	if q == nil {
		q = &readQueue[V]{reading: make(chan struct{}, 1)}
		if r.byKey == nil {
			r.byKey = map[K]*readQueue[V]{}
		}
		r.byKey[key] = q
	}
	q.callers++
	return q, q.begun
}

// removeCaller removes a caller, and with the last one, the result.
func (r *SharedReads[K, V]) removeCaller(key K, q *readQueue[V]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.callers--; q.callers == 0 {
		delete(r.byKey, key)
	}
}

// mustRead reports whether the caller that may read must do so, because no read that it can share has begun
// since it asked.
func (r *SharedReads[K, V]) mustRead(q *readQueue[V], asked int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.begun > asked && q.shared {
		return false
	}
	q.begun++
	q.shared = false // in case the read panics
	return true
}
