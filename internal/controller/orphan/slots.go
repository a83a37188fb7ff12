package orphan

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

const (
	// concurrent is the number of inventories that run at the same time. Each decodes all of a member's volumes.
	// After a restart, all members' inventories together would take hundreds of MiB of memory, while the
	// controllers start.
	concurrent = 4
	// longestWait is the maximum delay of an inventory by those of other members, which may respond slowly (I7).
	longestWait = time.Minute
)

// Slots limits how many inventories run at the same time.
type Slots chan struct{}

// NewSlots creates the slots for all members.
func NewSlots() Slots { return make(Slots, concurrent) }

// acquire waits for a slot, and returns a function that releases it. After longestWait, the inventory runs without a slot.
func (s Slots) acquire(ctx context.Context, c clock.Clock) (release func()) {
	none := func() {}
	timer := c.NewTimer(longestWait)
	defer timer.Stop()
	select {
	case s <- struct{}{}:
		return func() { <-s }
	case <-timer.C():
		return none
	case <-ctx.Done():
		return none
	}
}
