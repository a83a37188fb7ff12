package orphan

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

const (
	// maxConcurrentInventories is the number of inventories that run at the same time. Each decodes all of a member's volumes.
	// After a restart, all members' inventories together would take hundreds of MiB of memory, while the
	// controllers start.
	maxConcurrentInventories = 4
	// maxSlotWait is the maximum delay of an inventory by those of other members, which may respond slowly (I7).
	maxSlotWait = time.Minute
)

// InventorySlots limits how many inventories run at the same time.
type InventorySlots chan struct{}

// NewInventorySlots creates the slots for all members.
func NewInventorySlots() InventorySlots { return make(InventorySlots, maxConcurrentInventories) }

// acquireSlot waits for a slot, and returns a function that releases it. After maxSlotWait, the inventory runs without a slot.
func (s InventorySlots) acquireSlot(ctx context.Context, c clock.Clock) (release func()) {
	none := func() {}
	timer := c.NewTimer(maxSlotWait)
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
