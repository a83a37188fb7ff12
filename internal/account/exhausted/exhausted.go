package exhausted

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/route"
)

// Sizes are those that the drivers of one member said they have no capacity for, by the
// member's classes. It is kept in memory, for the life of a Link: what a restart
// forgets, the next volume that fails tells again. The zero value is ready.
type Sizes struct {
	mu     sync.Mutex
	failed map[string][]failure
	waker  route.Waker
}

// failure is a volume that a driver had no capacity for, and until when that counts.
type failure struct {
	size  resource.Quantity
	until time.Time
}

// Note that a driver has no capacity for a volume of that size of a member's class.
// It counts until the given time: then only a volume that is tried again can show.
func (e *Sizes) Note(memberClass string, size resource.Quantity, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	news := failure{size.DeepCopy(), until}
	if slices.ContainsFunc(e.failed[memberClass], news.saysNoMoreThan) {
		return
	}
	kept := slices.DeleteFunc(e.failed[memberClass], func(old failure) bool { return old.saysNoMoreThan(news) })
	if e.failed == nil {
		e.failed = map[string][]failure{}
	}
	e.failed[memberClass] = append(kept, news)
	e.waker.Wake(memberClass)
}

// saysNoMoreThan: whatever f rules out, other does too, and for as long.
func (f failure) saysNoMoreThan(other failure) bool {
	return other.size.Cmp(f.size) <= 0 && !other.until.Before(f.until)
}

// Limit is the most that is worth asking the class's driver for, in one volume,
// and until when; false if nothing is known to fail.
func (e *Sizes) Limit(memberClass string, now time.Time) (resource.Quantity, time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var least *failure
	for i := range e.failed[memberClass] {
		if f := &e.failed[memberClass][i]; f.until.After(now) && (least == nil || f.size.Cmp(least.size) < 0) {
			least = f
		}
	}
	if least == nil {
		delete(e.failed, memberClass)
		return resource.Quantity{}, time.Time{}, false
	}
	// Sizes are whole bytes: one less than what failed may fit.
	return *resource.NewQuantity(max(0, least.size.Value()-1), resource.BinarySI), least.until, true
}

// Forget what failed of a class: its driver has said again how much capacity there is.
func (e *Sizes) Forget(memberClass string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, has := e.failed[memberClass]; has {
		delete(e.failed, memberClass)
		e.waker.Wake(memberClass)
	}
}

// Met is that a driver has made a volume of that size of a member's class: what it
// had no capacity for before, of that size or less, counts no more.
func (e *Sizes) Met(memberClass string, size resource.Quantity) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := len(e.failed[memberClass])
	kept := slices.DeleteFunc(e.failed[memberClass], func(f failure) bool { return f.size.Cmp(size) <= 0 })
	if len(kept) == before {
		return
	}
	e.failed[memberClass] = kept
	if len(kept) == 0 {
		delete(e.failed, memberClass)
	}
	e.waker.Wake(memberClass)
}

// SourceOf enqueues what represents a member class's name in a controller whenever
// more is known of the class, or less. The end of a limit enqueues nothing: who shows
// it asks again at the time that Limit names.
func (e *Sizes) SourceOf(requests route.ByName) source.Source { return e.waker.SourceOf(requests) }
