package news

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Durations measures how long states last. Unlike StateMemory, it forgets none, so its callers must report when a state
// has ended.
type Durations[K comparable] struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	since map[K]time.Time
}

// NewDurations returns a Durations without states.
func NewDurations[K comparable](c clock.PassiveClock) *Durations[K] {
	return &Durations[K]{clock: c, since: map[K]time.Time{}}
}

// Measure returns how long a state has lasted, which is zero at the first call and if it does not last.
func (d *Durations[K]) Measure(state K, lasts bool) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !lasts {
		delete(d.since, state)
		return 0
	}
	since, known := d.since[state]
	if !known {
		since = d.clock.Now()
		d.since[state] = since
	}
	return d.clock.Since(since)
}
