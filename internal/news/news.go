// Package news remembers lasting states, and decides when an event about one is due.
package news

import (
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// RepeatInterval is the interval at which the event of a lasting state is repeated, because the host keeps
// events for an hour only (kube-apiserver's default of --event-ttl).
const RepeatInterval = 45 * time.Minute

// rememberedLimit is the maximum number of states that are remembered. The event of a forgotten one may be
// repeated earlier, like all of them after a restart of the manager.
const rememberedLimit = 4096

// StateMemory remembers the last event about each state.
type StateMemory struct {
	clock clock.PassiveClock
	last  *lru.Cache
}

type emitted struct {
	what any
	at   time.Time
}

// New returns a StateMemory without events.
func New(c clock.PassiveClock) *StateMemory { return &StateMemory{c, lru.New(rememberedLimit)} }

// EventDue reports whether an event is due, and counts it as emitted: what it says differs from the last
// event about this state, or that event is too old. It also returns when the next one is due, because
// a reconcile replaces the delay that an earlier one requested.
func (n *StateMemory) EventDue(state lru.Key, what any) (due bool, again time.Duration) {
	if again := n.DueIn(state, what); again > 0 {
		return false, again
	}
	n.last.Add(state, emitted{what, n.clock.Now()})
	return true, RepeatInterval
}

// DueIn returns when an event is due, or 0 if it is due now.
func (n *StateMemory) DueIn(state lru.Key, what any) time.Duration {
	last, known := n.lookupState(state, what)
	if !known {
		return 0
	}
	return max(0, RepeatInterval-n.clock.Since(last.at))
}

// StateDuration returns for how long a state has lasted, which is zero at the first call.
func (n *StateMemory) StateDuration(state lru.Key, what any) time.Duration {
	last, known := n.lookupState(state, what)
	if !known {
		last = emitted{what, n.clock.Now()}
		n.last.Add(state, last)
	}
	return n.clock.Since(last.at)
}

// lookupState returns what is remembered about a state, if it is still the same.
func (n *StateMemory) lookupState(state lru.Key, what any) (emitted, bool) {
	value, _ := n.last.Get(state)
	last, known := value.(emitted)
	return last, known && last.what == what
}

// ForgetState makes the next event about a state due.
func (n *StateMemory) ForgetState(state lru.Key) { n.last.Remove(state) }
