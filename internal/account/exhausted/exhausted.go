package exhausted

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/route"
)

// Sizes contains the volume sizes that one member's drivers rejected for lack of space, by member
// class. It is kept in memory and lives as long as the Link. After a restart, the next volume that
// fails records its size again. The zero value is ready for use.
type Sizes struct {
	mu      sync.Mutex
	failed  map[string][]failure
	changes route.Trigger
}

// failure is a size that a driver rejected, and the time when the record expires.
type failure struct {
	size  resource.Quantity
	until time.Time
}

// Note records that a driver lacks capacity for a volume of the given size and member class. The
// record expires at the given time: afterwards, only another attempt can show whether capacity is
// lacking.
func (e *Sizes) Note(memberClass string, size resource.Quantity, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	news := failure{size.DeepCopy(), until}
	if slices.ContainsFunc(e.failed[memberClass], news.impliedBy) {
		return
	}
	kept := slices.DeleteFunc(e.failed[memberClass], func(old failure) bool { return old.impliedBy(news) })
	if e.failed == nil {
		e.failed = map[string][]failure{}
	}
	e.failed[memberClass] = append(kept, news)
	e.changes.Enqueue(memberClass)
}

// impliedBy reports whether other excludes all sizes that f excludes, for at least as long as f.
func (f failure) impliedBy(other failure) bool {
	return other.size.Cmp(f.size) <= 0 && !other.until.Before(f.until)
}

// Limit returns the maximum size to request from the class's driver, and the time until which this
// limit applies. It returns false if no failure is known.
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
	// Sizes are whole bytes, so one byte less than the failed size may fit.
	return *resource.NewQuantity(max(0, least.size.Value()-1), resource.BinarySI), least.until, true
}

// Forget drops the failures of a class. Call it when the driver has reported its capacity again.
func (e *Sizes) Forget(memberClass string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, has := e.failed[memberClass]; has {
		delete(e.failed, memberClass)
		e.changes.Enqueue(memberClass)
	}
}

// Met records that a driver created a volume of the given size. Recorded failures of that size or
// less are dropped.
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
	e.changes.Enqueue(memberClass)
}

// SourceOf enqueues the requests that a function returns for a member class's name, whenever the
// class's failures change. An expiring limit enqueues nothing: the controller must check again at
// the time that Limit returned.
func (e *Sizes) SourceOf(requests route.ByName) source.Source { return e.changes.SourceOf(requests) }
