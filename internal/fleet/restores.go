package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/fencing"
	"github.com/xylem-io/xylem/internal/member/hostrecord"
)

// hostRestores contains when the host was last restored, according to the fences of all members. A
// member that was away, or that was registered later, cannot detect the restore itself.
type hostRestores struct {
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

// readWithin limits how long old claims wait for the fences of all members. It exceeds the time after
// which a member that does not respond is lost, and the duration of a killed manager's fence.
const readWithin = 2 * time.Minute

// begin is called when this process becomes the leader. Before that, a restore may not be detected.
func (h *hostRestores) begin(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = now
}

// await records that a member's fence must be read.
func (h *hostRestores) await(registration string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaited.Insert(registration)
}

func (h *hostRestores) note(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at.After(h.until) {
		at = h.until
	}
	if at.After(h.last) {
		h.last = at
	}
}

// settle records that a member's fence was read, or that the member is lost or no longer registered.
func (h *hostRestores) settle(registration string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaited.Delete(registration)
}

// with adds the restores of the host that other members have detected, or may still detect, to those
// of a fence.
func (h *hostRestores) with(own fencing.Restores, now time.Time) fencing.Restores {
	h.mu.Lock()
	defer h.mu.Unlock()
	own.HostAnywhere = h.last
	if h.awaited.Len() > 0 && now.Sub(h.until) < readWithin {
		own.HostUnknownUntil = h.until
	}
	return own
}

// readHostRestores reads the host's records of all registered members, including those that are
// away. It retries until it succeeds or the context ends. Later restores are noted when a fence
// detects them.
func (f *Fleet) readHostRestores(ctx context.Context) {
	for {
		err := f.tryReadHostRestores(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		f.Log.Info("waiting to connect the members", "cause", err.Error())
		select {
		case <-ctx.Done():
			return
		case <-f.clock.After(probeRetry):
		}
	}
}

func (f *Fleet) tryReadHostRestores(ctx context.Context) error {
	var all v1alpha1.ClusterRegistrationList
	if err := f.HostLive.List(ctx, &all); err != nil {
		return fmt.Errorf("list the registered members: %w", err)
	}
	for i := range all.Items {
		f.restores.await(all.Items[i].Name)
		id := all.Items[i].Status.ClusterID
		if id == "" {
			continue // never connected before the restore, so no record contains it
		}
		record, err := hostrecord.GetLease(ctx, f.HostLive, f.Namespace, hostrecord.Name(id))
		if err != nil {
			return fmt.Errorf("read the record of cluster %s: %w", id, err)
		}
		f.restores.note(fencing.HostRestored(record))
	}
	return nil
}
