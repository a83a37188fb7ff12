package account

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The deletion of an orphan triggers another inventory even if the orphan was never a candidate.
// Otherwise, it would be reported as an orphan until the next periodic inventory.
func TestSuspicions(t *testing.T) {
	const member, volume = "cluster38", "pvc-1"
	found := []Orphan{{Volume: volume}}
	for name, tc := range map[string]struct {
		happens func(*OrphanTracker)
		want    bool
	}{
		"no events":       {func(*OrphanTracker) {}, false},
		"a candidate":     {func(b *OrphanTracker) { b.SetOrphanCandidate(member, volume, true) }, true},
		"not a candidate": {func(b *OrphanTracker) { b.SetOrphanCandidate(member, volume, false) }, false},
		"a volume that is not a candidate is deleted": {func(b *OrphanTracker) { b.RecordVolumeGone(member, volume) }, false},
		"an inventory finds an orphan":                {func(b *OrphanTracker) { b.BeginInventory(member); b.RecordInventory(member, found) }, false},
		"found, then deleted": {func(b *OrphanTracker) {
			b.BeginInventory(member)
			b.RecordInventory(member, found)
			b.RecordVolumeGone(member, volume)
		}, true},
		"deleted during the inventory, then found": {func(b *OrphanTracker) {
			b.BeginInventory(member)
			b.RecordVolumeGone(member, volume)
			b.RecordInventory(member, found)
		}, true},
		"found, then gets a root": {func(b *OrphanTracker) {
			b.BeginInventory(member)
			b.RecordInventory(member, found)
			b.SetOrphanCandidate(member, volume, false)
		}, true},
		"a volume with a root becomes an orphan": {func(b *OrphanTracker) {
			b.BeginInventory(member)
			b.SetOrphanCandidate(member, volume, false)
			b.RecordInventory(member, found)
		}, true},
		"deleted before the inventory": {func(b *OrphanTracker) {
			b.RecordVolumeGone(member, volume)
			b.BeginInventory(member)
			b.RecordInventory(member, found)
		}, false},
		"another volume is deleted": {func(b *OrphanTracker) {
			b.BeginInventory(member)
			b.RecordInventory(member, found)
			b.RecordVolumeGone(member, "pvc-2")
		}, false},
		"another member's volume is deleted": {func(b *OrphanTracker) {
			b.BeginInventory(member)
			b.RecordInventory(member, found)
			b.RecordVolumeGone("cluster39", volume)
		}, false},
		"found although no inventory has begun": {func(b *OrphanTracker) { b.RecordInventory(member, found) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			book := NewOrphanTracker()
			woken := book.ResetCandidates(member)
			tc.happens(book)
			select {
			case <-woken:
				if !tc.want {
					t.Error("an inventory was triggered, want none")
				}
			default:
				if tc.want {
					t.Error("no inventory was triggered")
				}
			}
		})
	}
}

// A candidate's deletion triggers one inventory. Later events for the same volume trigger none.
func TestDeletedVolumeIsNotACandidate(t *testing.T) {
	book := NewOrphanTracker()
	woken := book.ResetCandidates("cluster38")
	book.SetOrphanCandidate("cluster38", "pvc-1", true)
	<-woken
	book.RecordVolumeGone("cluster38", "pvc-1")
	<-woken
	book.RecordVolumeGone("cluster38", "pvc-1")
	select {
	case <-woken:
		t.Error("a second deletion event triggered another inventory")
	default:
	}
}

// Claims for which two members have a volume are enqueued when the other members' orphans change.
// No other change in an inventory enqueues them.
func TestFoundSource(t *testing.T) {
	book := NewOrphanTracker()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	var woken []string
	source := book.OrphansChangeSource(func(_ context.Context, registration string) []reconcile.Request {
		woken = append(woken, registration)
		_ = book.MembersWithSameOrphan(registration, "pvc-1", Orphan{}.Root) // the enqueued controller may read the book
		return nil
	})
	if err := source.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	found := []Orphan{{Volume: "pvc-1"}}
	for _, step := range []struct {
		name string
		does func()
		want []string
	}{
		{"no orphan is found", func() { book.RecordInventory("cluster38", nil) }, nil},
		{"an orphan is found", func() { book.RecordInventory("cluster38", found) }, []string{"cluster38"}},
		{"the same orphan is found again", func() { book.RecordInventory("cluster38", found) }, nil},
		{"the inventory fails", func() { book.RecordInventoryFailure("cluster38", "away", time.Now()) }, nil},
		{"the inventory succeeds again", func() { book.RecordInventory("cluster38", found) }, nil},
		{"the orphan is deleted", func() { book.RecordInventory("cluster38", nil) }, []string{"cluster38"}},
		{"another member has an orphan", func() { book.RecordInventory("cluster39", found) }, []string{"cluster39"}},
		{"the other member is dropped", func() { book.ForgetMember("cluster39") }, []string{"cluster39"}},
		{"a member without orphans is dropped: no change", func() { book.ForgetMember("cluster38") }, nil},
	} {
		woken = nil
		step.does()
		if diff := cmp.Diff(step.want, woken); diff != "" {
			t.Errorf("%s: enqueued (-want +got):\n%s", step.name, diff)
		}
	}
}
