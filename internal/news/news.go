// Package news remembers lasting states, and decides when an event about one is due.
package news

import (
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// Again is the interval at which the event of a lasting state is repeated, because the host keeps
// events for an hour only (kube-apiserver's default of --event-ttl).
const Again = 45 * time.Minute

// capacity is the maximum number of states that are remembered. The event of a forgotten one may be
// repeated earlier, like all of them after a restart of the manager.
const capacity = 4096

// News remembers the last event about each state.
type News struct {
	clock clock.PassiveClock
	last  *lru.Cache
}

type emitted struct {
	what any
	at   time.Time
}

// New returns a News without events.
func New(c clock.PassiveClock) *News { return &News{c, lru.New(capacity)} }

// Due reports whether an event is due, and counts it as emitted: what it says differs from the last
// event about this state, or that event is too old. It also returns when the next one is due, because
// a reconcile replaces the delay that an earlier one requested.
func (n *News) Due(state lru.Key, what any) (due bool, again time.Duration) {
	if again := n.DueIn(state, what); again > 0 {
		return false, again
	}
	n.last.Add(state, emitted{what, n.clock.Now()})
	return true, Again
}

// DueIn returns when an event is due, or 0 if it is due now.
func (n *News) DueIn(state lru.Key, what any) time.Duration {
	last, known := n.remembered(state, what)
	if !known {
		return 0
	}
	return max(0, Again-n.clock.Since(last.at))
}

// Lasted returns for how long a state has lasted, which is zero at the first call.
func (n *News) Lasted(state lru.Key, what any) time.Duration {
	last, known := n.remembered(state, what)
	if !known {
		last = emitted{what, n.clock.Now()}
		n.last.Add(state, last)
	}
	return n.clock.Since(last.at)
}

// remembered returns what is remembered about a state, if it is still the same.
func (n *News) remembered(state lru.Key, what any) (emitted, bool) {
	value, _ := n.last.Get(state)
	last, known := value.(emitted)
	return last, known && last.what == what
}

// Forget makes the next event about a state due.
func (n *News) Forget(state lru.Key) { n.last.Remove(state) }
