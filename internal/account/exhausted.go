package account

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/route"
)

// RejectedSizes contains the volume sizes that one member's drivers rejected for lack of space, by member
// class. It is kept in memory and lives as long as the Link. After a restart, the next volume that
// fails records its size again. The zero value is ready for use.
type RejectedSizes struct {
	mu       sync.Mutex
	rejected map[string][]rejectedSize
	changes  route.Trigger
}

// rejectedSize is a size that a driver rejected, and the time when the record expires.
type rejectedSize struct {
	size    resource.Quantity
	expires time.Time
}

// RecordRejectedSize records that a driver lacks capacity for a volume of the given size and member class. The
// record expires at the given time: afterwards, only another attempt can show whether capacity is
// lacking.
func (e *RejectedSizes) RecordRejectedSize(memberClass string, size resource.Quantity, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	news := rejectedSize{size.DeepCopy(), until}
	if slices.ContainsFunc(e.rejected[memberClass], news.isImpliedBy) {
		return
	}
	kept := slices.DeleteFunc(e.rejected[memberClass], func(old rejectedSize) bool { return old.isImpliedBy(news) })
	if e.rejected == nil {
		e.rejected = map[string][]rejectedSize{}
	}
	e.rejected[memberClass] = append(kept, news)
	e.changes.Enqueue(memberClass)
}

// isImpliedBy reports whether other excludes all sizes that f excludes, for at least as long as f.
func (f rejectedSize) isImpliedBy(other rejectedSize) bool {
	return other.size.Cmp(f.size) <= 0 && !other.expires.Before(f.expires)
}

// MaxRequestSize returns the maximum size to request from the class's driver, and the time until which this
// limit applies. It returns false if no failure is known.
func (e *RejectedSizes) MaxRequestSize(memberClass string, now time.Time) (resource.Quantity, time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var least *rejectedSize
	for i := range e.rejected[memberClass] {
		if f := &e.rejected[memberClass][i]; f.expires.After(now) && (least == nil || f.size.Cmp(least.size) < 0) {
			least = f
		}
	}
	if least == nil {
		delete(e.rejected, memberClass)
		return resource.Quantity{}, time.Time{}, false
	}
	// Sizes are whole bytes, so one byte less than the failed size may fit.
	return *resource.NewQuantity(max(0, least.size.Value()-1), resource.BinarySI), least.expires, true
}

// ForgetClass drops the failures of a class. Call it when the driver has reported its capacity again.
func (e *RejectedSizes) ForgetClass(memberClass string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, has := e.rejected[memberClass]; has {
		delete(e.rejected, memberClass)
		e.changes.Enqueue(memberClass)
	}
}

// RecordCreatedSize records that a driver created a volume of the given size. Recorded failures of that size or
// less are dropped.
func (e *RejectedSizes) RecordCreatedSize(memberClass string, size resource.Quantity) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := len(e.rejected[memberClass])
	kept := slices.DeleteFunc(e.rejected[memberClass], func(f rejectedSize) bool { return f.size.Cmp(size) <= 0 })
	if len(kept) == before {
		return
	}
	e.rejected[memberClass] = kept
	if len(kept) == 0 {
		delete(e.rejected, memberClass)
	}
	e.changes.Enqueue(memberClass)
}

// LimitChangeSource enqueues the requests that a function returns for a member class's name, whenever the
// class's failures change. An expiring limit enqueues nothing: the controller must check again at
// the time that MaxRequestSize returned.
func (e *RejectedSizes) LimitChangeSource(requests route.RequestsByName) source.Source {
	return e.changes.RequestsSource(requests)
}
