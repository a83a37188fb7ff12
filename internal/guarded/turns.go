package guarded

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

const (
	// atOnce is how many writes of one Root are under way at a time, those left out that
	// have taken longer than a turn. The host's own controllers and our leases wait for the
	// same API server. Its PV controller sends three requests for each claim, one after the
	// other, while ours are five, of a claim and its Pod: more at a time would not have a
	// claim bound any sooner.
	atOnce = 4
	// turn is how long a write keeps others waiting. One that takes longer is delayed by
	// something that need not concern them: an admission webhook of one namespace.
	turn = time.Second
)

// turns bound how many writes are under way at a time, first come, first served; nil
// bounds nothing.
type turns struct{ free *semaphore.Weighted }

func newTurns() *turns { return &turns{semaphore.NewWeighted(atOnce)} }

// take waits for a turn. What it returns ends it, as does time.
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
