package account

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A volume that was found to be an orphan, and that was deleted before anything made it a
// candidate, triggers another account. Otherwise, it would be shown as an orphan until the next
// periodic one.
func TestSuspicions(t *testing.T) {
	const member, volume = "cluster38", "pvc-1"
	found := []Orphan{{Volume: volume}}
	for name, tc := range map[string]struct {
		happens func(*Book)
		want    bool
	}{
		"nothing":                                {func(*Book) {}, false},
		"a candidate":                            {func(b *Book) { b.SetCandidate(member, volume, true) }, true},
		"not a candidate":                        {func(b *Book) { b.SetCandidate(member, volume, false) }, false},
		"gone":                                   {func(b *Book) { b.Gone(member, volume) }, false},
		"found":                                  {func(b *Book) { b.Looking(member); b.Found(member, found) }, false},
		"found, and gone":                        {func(b *Book) { b.Looking(member); b.Found(member, found); b.Gone(member, volume) }, true},
		"gone, and found":                        {func(b *Book) { b.Looking(member); b.Gone(member, volume); b.Found(member, found) }, true},
		"found, and it now has a root":           {func(b *Book) { b.Looking(member); b.Found(member, found); b.SetCandidate(member, volume, false) }, true},
		"a volume with a root becomes an orphan": {func(b *Book) { b.Looking(member); b.SetCandidate(member, volume, false); b.Found(member, found) }, true},
		"gone before the comparison":             {func(b *Book) { b.Gone(member, volume); b.Looking(member); b.Found(member, found) }, false},
		"another volume is deleted":              {func(b *Book) { b.Looking(member); b.Found(member, found); b.Gone(member, "pvc-2") }, false},
		"of another member":                      {func(b *Book) { b.Looking(member); b.Found(member, found); b.Gone("cluster39", volume) }, false},
		"found while away":                       {func(b *Book) { b.Found(member, found) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			book := NewBook()
			woken := book.Suspicions(member)
			tc.happens(book)
			select {
			case <-woken:
				if !tc.want {
					t.Error("an unneeded account")
				}
			default:
				if tc.want {
					t.Error("no further account")
				}
			}
		})
	}
}

// A deleted candidate is examined once, not at every later event.
func TestDeletedVolumeIsNotACandidate(t *testing.T) {
	book := NewBook()
	woken := book.Suspicions("cluster38")
	book.SetCandidate("cluster38", "pvc-1", true)
	<-woken
	book.Gone("cluster38", "pvc-1")
	<-woken
	book.Gone("cluster38", "pvc-1")
	select {
	case <-woken:
		t.Error("another account")
	default:
	}
}

// Claims for which two members have a volume wait for a change of the others' orphans. No other
// change in an account enqueues them.
func TestFoundSource(t *testing.T) {
	book := NewBook()
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
		{"nothing is found", func() { book.Found("cluster38", nil) }, nil},
		{"one is found", func() { book.Found("cluster38", found) }, []string{"cluster38"}},
		{"it is found again", func() { book.Found("cluster38", found) }, nil},
		{"unknown again", func() { book.Unknown("cluster38", "away", time.Now()) }, nil},
		{"it is known again", func() { book.Found("cluster38", found) }, nil},
		{"it is deleted", func() { book.Found("cluster38", nil) }, []string{"cluster38"}},
		{"another has one", func() { book.Found("cluster39", found) }, []string{"cluster39"}},
		{"and is no longer reported", func() { book.Forget("cluster39") }, []string{"cluster39"}},
		{"a member without orphans is dropped", func() { book.Forget("cluster38") }, nil},
	} {
		woken = nil
		step.does()
		if diff := cmp.Diff(step.want, woken); diff != "" {
			t.Errorf("%s: enqueued (-want +got):\n%s", step.name, diff)
		}
	}
}
