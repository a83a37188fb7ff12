package fencing

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// HostRestores contains when the host was last restored, according to the fences of all members. A
// member that was away, or that was registered later, cannot detect the restore itself.
type HostRestores struct {
	mu sync.Mutex
	// leadingSince is when this process became the leader. A leader ends if the host is restored, so every
	// restore was earlier. A member that forges a restore therefore affects the other members only for
	// older objects (I7, I8). The times of restores come from the members' clocks.
	leadingSince time.Time
	lastRestore  time.Time
	// awaitedMembers contains the registrations whose fences this process has not read yet. A lost member
	// does not count.
	awaitedMembers sets.Set[string]
}

// MaxFenceReadWait limits how long old claims wait for the fences of all members. It exceeds the time after
// which a member that does not respond is lost, and the duration of a killed manager's fence.
const MaxFenceReadWait = 2 * time.Minute

// NewHostRestores creates an HostRestores that has noted no restore.
func NewHostRestores() *HostRestores { return &HostRestores{awaitedMembers: sets.New[string]()} }

// BeginLeading is called when this process becomes the leader. Before that, a restore may not be detected.
func (h *HostRestores) BeginLeading(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leadingSince = now
}

// AwaitMember records that a member's fence must be read.
func (h *HostRestores) AwaitMember(registration string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaitedMembers.Insert(registration)
}

// RecordRestore records when a fence, or the host's record of one, says that the host was restored.
func (h *HostRestores) RecordRestore(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at.After(h.leadingSince) {
		at = h.leadingSince
	}
	if at.After(h.lastRestore) {
		h.lastRestore = at
	}
}

// SettleMember records that a member's fence was read, or that the member is lost or no longer registered.
func (h *HostRestores) SettleMember(registration string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaitedMembers.Delete(registration)
}

// AddHostRestores adds the restores of the host that other members have detected, or may still detect, to those
// of a fence.
func (h *HostRestores) AddHostRestores(own RestoreTimes, now time.Time) RestoreTimes {
	h.mu.Lock()
	defer h.mu.Unlock()
	own.HostAnywhere = h.lastRestore
	if h.awaitedMembers.Len() > 0 && now.Sub(h.leadingSince) < MaxFenceReadWait {
		own.HostUnknownUntil = h.leadingSince
	}
	return own
}
