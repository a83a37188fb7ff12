package rootpv

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// idle notes when this process listed the Pods of a promise and found that none uses it,
// for the mark that the promise has. The grace is counted from there by the process's own
// clock, which never jumps: the mark may have been made by another leader, whose wall
// clock differs. A restart begins the grace again.
type idle struct {
	mu     sync.Mutex
	listed map[types.UID]listing // by the UID of the promise
}

type listing struct {
	mark string
	at   time.Time
}

func newIdle() *idle { return &idle{listed: map[types.UID]listing{}} }

// begin notes a list that was complete at a time.
func (i *idle) begin(promise types.UID, mark string, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.listed[promise] = listing{mark, at}
}

// end forgets a promise that somebody uses, or that has no disk.
func (i *idle) end(promise types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.listed, promise)
}

// since is how long ago the Pods of a promise were listed for the mark that it has; false
// if this process has not listed them.
func (i *idle) since(promise *corev1.PersistentVolume, now time.Time) (time.Duration, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	l, there := i.listed[promise.UID]
	if !there || l.mark != promise.Annotations[v1alpha1.AnnotationUnusedSince] {
		return 0, false
	}
	return now.Sub(l.at), true
}
