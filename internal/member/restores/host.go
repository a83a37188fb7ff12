package restores

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// OfHost contains when the host was last restored, according to the fences of all members. A
// member that was away, or that was registered later, cannot detect the restore itself.
type OfHost struct {
	mu sync.Mutex
	// until is when this process became the leader. A leader ends if the host is restored, so every
	// restore was earlier. A member that forges a restore therefore affects the other members only for
	// older objects (I7, I8). The times of restores come from the members' clocks.
	until time.Time
	last  time.Time
	// awaited contains the registrations whose fences this process has not read yet. A lost member
	// does not count.
	awaited sets.Set[string]
}

// ReadWithin limits how long old claims wait for the fences of all members. It exceeds the time after
// which a member that does not respond is lost, and the duration of a killed manager's fence.
const ReadWithin = 2 * time.Minute

// NewOfHost creates an OfHost that has noted no restore.
func NewOfHost() *OfHost { return &OfHost{awaited: sets.New[string]()} }

// Begin is called when this process becomes the leader. Before that, a restore may not be detected.
func (h *OfHost) Begin(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = now
}

// Await records that a member's fence must be read.
func (h *OfHost) Await(registration string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaited.Insert(registration)
}

// Note records when a fence, or the host's record of one, says that the host was restored.
func (h *OfHost) Note(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at.After(h.until) {
		at = h.until
	}
	if at.After(h.last) {
		h.last = at
	}
}

// Settle records that a member's fence was read, or that the member is lost or no longer registered.
func (h *OfHost) Settle(registration string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaited.Delete(registration)
}

// With adds the restores of the host that other members have detected, or may still detect, to those
// of a fence.
func (h *OfHost) With(own Times, now time.Time) Times {
	h.mu.Lock()
	defer h.mu.Unlock()
	own.HostAnywhere = h.last
	if h.awaited.Len() > 0 && now.Sub(h.until) < ReadWithin {
		own.HostUnknownUntil = h.until
	}
	return own
}
