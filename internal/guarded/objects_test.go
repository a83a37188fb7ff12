package guarded

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Take announces the exact delay of the next change of one object, and counts only changes that may
// be made. Other objects have their own limits.
func TestChangesArePaced(t *testing.T) {
	changes, now := NewChangeLimiter(), time.Unix(1_800_000_000, 0)
	for i := range objectChangeBurst {
		if wait := changes.TakeToken("pv", now); wait != 0 {
			t.Fatalf("change %d waits %s", i, wait)
		}
	}
	for range 100 {
		if wait := changes.TakeToken("pv", now); wait != objectChangeRefill {
			t.Fatalf("the next change waits %s, want %s", wait, objectChangeRefill)
		}
	}
	if wait := changes.TakeToken("another", now); wait != 0 {
		t.Errorf("another object's change waits %s", wait)
	}
	if wait := changes.TakeToken("pv", now.Add(objectChangeRefill)); wait != 0 {
		t.Errorf("after the delay, the change waits %s", wait)
	}
}

// Objects that are forgotten begin with a full burst, so a limit for all objects together is needed
// too.
func TestChangesOfManyObjects(t *testing.T) {
	changes, now, made := NewChangeLimiter(), time.Unix(1_800_000_000, 0), 0
	for i := range 3 * TrackedObjects {
		switch wait := changes.TakeToken(types.UID(strconv.Itoa(i)), now); {
		case wait == 0:
			made++
		case wait > time.Second/memberChangeRate:
			t.Fatalf("after %d changes, the next one waits %s, want at most %s", made, wait, time.Second/memberChangeRate)
		}
	}
	if made != memberChangeBurst {
		t.Errorf("%d changes are allowed at once, want %d", made, memberChangeBurst)
	}
}
