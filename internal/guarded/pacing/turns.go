package pacing

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

const (
	// AtOnce is the maximum number of concurrent writes of one writer, except those that take longer
	// than a turn. The host's own controllers and Xylem's Leases use the same API server. Its PV
	// controller sends three requests for each claim, one after the other. Xylem sends five for a
	// claim and its Pod, and more concurrency would not bind any claim sooner.
	AtOnce = 4
	// Turn is how long a write delays others. A slower one waits for something that does not
	// concern them, such as an admission webhook of one namespace.
	Turn = time.Second
)

// Turns limits the number of concurrent writes, first come, first served. nil means no limit.
type Turns struct{ free *semaphore.Weighted }

// NewTurns returns the limit of one writer.
func NewTurns() *Turns { return &Turns{semaphore.NewWeighted(AtOnce)} }

// Take waits for a turn. The turn ends when the returned function is called, or after its
// maximum time.
func (t *Turns) Take(ctx context.Context) (func(), error) {
	if t == nil {
		return func() {}, nil
	}
	if err := t.free.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	end := sync.OnceFunc(func() { t.free.Release(1) })
	timer := clock.RealClock{}.AfterFunc(Turn, end)
	return func() {
		timer.Stop()
		end()
	}, nil
}
