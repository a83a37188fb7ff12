package pacing

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// A member that changes more objects than Changes tracks writes few bytes per second nonetheless.
func TestChangesOfManyObjects(t *testing.T) {
	changes, bytes, now := NewChanges(), NewBytes(), time.Now()
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": strings.Repeat("x", 8<<10)}}}
	written := 0
	for i := range 3 * changed {
		if changes.Take(types.UID(string(rune('a'+i))), now) == 0 && bytes.Take(pv, now) == 0 {
			written += pv.Size()
		}
	}
	if written > statusBurst {
		t.Errorf("%d bytes written, want at most %d", written, statusBurst)
	}
	if wait := bytes.Take(pv, now); wait <= 0 || wait > time.Second {
		t.Errorf("the next write waits %s, want less than a second", wait)
	}
}
