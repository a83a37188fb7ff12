package orphan

import (
	"context"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestSlots(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	slots := NewInventorySlots()
	var first func()
	for range maxConcurrentInventories {
		first = slots.acquireSlot(t.Context(), clock) // free slots cause no delay
	}
	waiting := func(ctx context.Context) chan func() {
		acquired := make(chan func(), 1)
		go func() { acquired <- slots.acquireSlot(ctx, clock) }()
		for !clock.HasWaiters() {
			if len(acquired) > 0 {
				t.Fatal("more inventories run than allowed")
			}
		}
		return acquired
	}
	t.Run("the next inventory begins when one ends", func(t *testing.T) {
		acquired := waiting(t.Context())
		first()
		(<-acquired)()
		slots.acquireSlot(t.Context(), clock)
	})
	t.Run("slow members do not delay others for long (I7)", func(t *testing.T) {
		acquired := waiting(t.Context())
		clock.Step(maxSlotWait)
		(<-acquired)()
		if len(slots) != maxConcurrentInventories {
			t.Errorf("%d slots are in use, want %d", len(slots), maxConcurrentInventories)
		}
	})
	t.Run("a link that ends does not wait", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		acquired := waiting(ctx)
		cancel()
		(<-acquired)()
	})
}
