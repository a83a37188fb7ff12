package rootpv

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// idle records when this process listed the Pods of a promise, found that no Pod uses it, and
// observed its mark. The grace period starts then, by this process's monotonic clock, because
// another leader with another wall clock may have set the mark. A restart starts the grace
// period again.
type idle struct {
	mu     sync.Mutex
	listed map[types.UID]listing // by the UID of the promise
}

type listing struct {
	mark string
	at   time.Time
}

func newIdle() *idle { return &idle{listed: map[types.UID]listing{}} }

// begin records a list that was complete at the given time.
func (i *idle) begin(promise types.UID, mark string, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.listed[promise] = listing{mark, at}
}

// end drops the record of a promise that a Pod uses, or that has no disk.
func (i *idle) end(promise types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.listed, promise)
}

// since returns how long ago this process listed the Pods of a promise with its current mark,
// and false if it has not.
func (i *idle) since(promise *corev1.PersistentVolume, now time.Time) (time.Duration, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	l, there := i.listed[promise.UID]
	if !there || l.mark != promise.Annotations[v1alpha1.AnnotationUnusedSince] {
		return 0, false
	}
	return now.Sub(l.at), true
}
