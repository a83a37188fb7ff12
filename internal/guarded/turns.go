package guarded

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

const (
	// atOnce is the maximum number of concurrent writes of one Root, except those that take longer
	// than a turn. The host's own controllers and Xylem's Leases use the same API server. Its PV
	// controller sends three requests for each claim, one after the other. Xylem sends five for a
	// claim and its Pod, and more concurrency would not bind any claim sooner.
	atOnce = 4
	// turn is how long a write delays others. A slower one waits for something that does not
	// concern them, such as an admission webhook of one namespace.
	turn = time.Second
)

// turns limits the number of concurrent writes, first come, first served. nil means no limit.
type turns struct{ free *semaphore.Weighted }

func newTurns() *turns { return &turns{semaphore.NewWeighted(atOnce)} }

// take waits for a turn. The turn ends when the returned function is called, or after its
// maximum time.
func (t *turns) take(ctx context.Context) (func(), error) {
	if t == nil {
		return func() {}, nil
	}
	if err := t.free.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	end := sync.OnceFunc(func() { t.free.Release(1) })
	timer := clock.RealClock{}.AfterFunc(turn, end)
	return func() {
		timer.Stop()
		end()
	}, nil
}
