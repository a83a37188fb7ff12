package guarded

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// A process creates and deletes objects for months, so the records of its writes must expire.
func TestForgetsWhatHasExpired(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	remembered := NewRecentWrites(clock)
	write := func(n int) {
		uid := types.UID(strconv.Itoa(n))
		remembered.RecordWrite(WrittenPart{Object: uid}, "7", "8")
		remembered.RecordCreation(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: string(uid)}})
	}
	for n := range 100 {
		write(n)
	}
	clock.Step(writeMemory)
	write(100)
	if versions, made := remembered.replacedVersions.Len(), remembered.created.Len(); versions != 1 || made != 1 {
		t.Errorf("%d versions and %d creations are recorded, want 1 and 1", versions, made)
	}
}
