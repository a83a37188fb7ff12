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
		"a candidate":     {func(b *OrphanTracker) { b.SetCandidate(member, volume, true) }, true},
		"not a candidate": {func(b *OrphanTracker) { b.SetCandidate(member, volume, false) }, false},
		"a volume that is not a candidate is deleted": {func(b *OrphanTracker) { b.Gone(member, volume) }, false},
		"an inventory finds an orphan":                {func(b *OrphanTracker) { b.BeginInventory(member); b.Found(member, found) }, false},
		"found, then deleted":                         {func(b *OrphanTracker) { b.BeginInventory(member); b.Found(member, found); b.Gone(member, volume) }, true},
		"deleted during the inventory, then found":    {func(b *OrphanTracker) { b.BeginInventory(member); b.Gone(member, volume); b.Found(member, found) }, true},
		"found, then gets a root": {func(b *OrphanTracker) {
			b.BeginInventory(member)
			b.Found(member, found)
			b.SetCandidate(member, volume, false)
		}, true},
		"a volume with a root becomes an orphan": {func(b *OrphanTracker) {
			b.BeginInventory(member)
			b.SetCandidate(member, volume, false)
			b.Found(member, found)
		}, true},
		"deleted before the inventory":          {func(b *OrphanTracker) { b.Gone(member, volume); b.BeginInventory(member); b.Found(member, found) }, false},
		"another volume is deleted":             {func(b *OrphanTracker) { b.BeginInventory(member); b.Found(member, found); b.Gone(member, "pvc-2") }, false},
		"another member's volume is deleted":    {func(b *OrphanTracker) { b.BeginInventory(member); b.Found(member, found); b.Gone("cluster39", volume) }, false},
		"found although no inventory has begun": {func(b *OrphanTracker) { b.Found(member, found) }, false},
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
	book.SetCandidate("cluster38", "pvc-1", true)
	<-woken
	book.Gone("cluster38", "pvc-1")
	<-woken
	book.Gone("cluster38", "pvc-1")
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
	source := book.FoundSource(func(_ context.Context, registration string) []reconcile.Request {
		woken = append(woken, registration)
		_ = book.Rivals(registration, "pvc-1", Orphan{}.Root) // the enqueued controller may read the book
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
		{"no orphan is found", func() { book.Found("cluster38", nil) }, nil},
		{"an orphan is found", func() { book.Found("cluster38", found) }, []string{"cluster38"}},
		{"the same orphan is found again", func() { book.Found("cluster38", found) }, nil},
		{"the inventory fails", func() { book.Unknown("cluster38", "away", time.Now()) }, nil},
		{"the inventory succeeds again", func() { book.Found("cluster38", found) }, nil},
		{"the orphan is deleted", func() { book.Found("cluster38", nil) }, []string{"cluster38"}},
		{"another member has an orphan", func() { book.Found("cluster39", found) }, []string{"cluster39"}},
		{"the other member is dropped", func() { book.Forget("cluster39") }, []string{"cluster39"}},
		{"a member without orphans is dropped: no change", func() { book.Forget("cluster38") }, nil},
	} {
		woken = nil
		step.does()
		if diff := cmp.Diff(step.want, woken); diff != "" {
			t.Errorf("%s: enqueued (-want +got):\n%s", step.name, diff)
		}
	}
}
