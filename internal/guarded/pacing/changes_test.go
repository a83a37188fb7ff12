package pacing

import (
	"testing"
	"time"
)

// Take announces the exact delay of the next change of one object, and counts only changes that may
// be made. Other objects have their own limits.
func TestChangesArePaced(t *testing.T) {
	changes, now := NewChanges(), time.Unix(1_800_000_000, 0)
	for i := range changeBurst {
		if wait := changes.Take("pv", now); wait != 0 {
			t.Fatalf("change %d waits %s", i, wait)
		}
	}
	for range 100 {
		if wait := changes.Take("pv", now); wait != changeRefill {
			t.Fatalf("the next change waits %s, want %s", wait, changeRefill)
		}
	}
	if wait := changes.Take("another", now); wait != 0 {
		t.Errorf("another object's change waits %s", wait)
	}
	if wait := changes.Take("pv", now.Add(changeRefill)); wait != 0 {
		t.Errorf("after the delay, the change waits %s", wait)
	}
}
