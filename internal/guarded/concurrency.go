package guarded

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

const (
	// ConcurrentWrites is the maximum number of concurrent writes of one writer, except those that take
	// longer than SlotTime. The host's own controllers and Xylem's Leases use the same API server.
	// The host's PV controller sends three requests for each claim, one after the other. Xylem
	// sends five requests for a claim and its Pod. More concurrency would not bind any claim
	// sooner.
	ConcurrentWrites = 4
	// SlotTime is the maximum time for which a write delays others. A slower write probably waits for
	// something that does not affect them, such as an admission webhook for one namespace.
	SlotTime = time.Second
)

// ConcurrencyLimit limits the number of concurrent writes, first come, first served. nil means no limit.
type ConcurrencyLimit struct{ free *semaphore.Weighted }

// NewConcurrencyLimit returns the limit for one writer.
func NewConcurrencyLimit() *ConcurrencyLimit {
	return &ConcurrencyLimit{semaphore.NewWeighted(ConcurrentWrites)}
}

// Acquire waits until a write may begin. The write no longer counts when the returned function is called, or after
// SlotTime.
func (t *ConcurrencyLimit) Acquire(ctx context.Context) (func(), error) {
	if t == nil {
		return func() {}, nil
	}
	if err := t.free.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	end := sync.OnceFunc(func() { t.free.Release(1) })
	timer := clock.RealClock{}.AfterFunc(SlotTime, end)
	return func() {
		timer.Stop()
		end()
	}, nil
}
