package observe

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume"
)

// UnusedPromises records when this process listed the Pods of a promise, found that no Pod uses it, and
// observed its mark. The grace period starts then, by this process's monotonic clock, because
// another leader with another wall clock may have set the mark. A restart starts the grace
// period again.
type UnusedPromises struct {
	mu     sync.Mutex
	listed map[types.UID]listing // by the UID of the promise
}

type listing struct {
	mark string
	at   time.Time
}

// NewUnusedPromises returns a record for the promises of one member.
func NewUnusedPromises() *UnusedPromises {
	return &UnusedPromises{listed: map[types.UID]listing{}}
}

// Begin records a list that was complete at the given time.
func (u *UnusedPromises) Begin(promise types.UID, mark string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.listed[promise] = listing{mark, at}
}

// ForgetPromise drops the record of a promise that a Pod uses, or that has no disk.
func (u *UnusedPromises) ForgetPromise(promise types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.listed, promise)
}

// since returns how long ago this process listed the Pods of a promise with its current mark,
// and false if it has not.
func (u *UnusedPromises) since(promise *corev1.PersistentVolume, now time.Time) (time.Duration, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l, there := u.listed[promise.UID]
	if !there || l.mark != promise.Annotations[v1alpha1.AnnotationUnusedSince] {
		return 0, false
	}
	return now.Sub(l.at), true
}

// observePromiseUsers reads the Pods that need the disk of a promise that is released with its last Pod.
func (o Observer) observePromiseUsers(ctx context.Context, s *volume.Observed) error {
	if !s.ReleasedWhenUnused() {
		return nil
	}
	pods, err := index.PodsOfClaim(ctx, o.Host, hostpv.ClaimRefKey(s.Host))
	if err != nil {
		return err
	}
	s.PromiseUsers, err = o.PodsUsingDisk(ctx, o.Host, pods)
	return err
}

// Observe sets how long ago this process recorded that no Pod uses a promise that is released with its last
// Pod. mayLackRoot reports whether a restored host may have lost the root of an object in the member.
func (u *UnusedPromises) Observe(s *volume.Observed, now time.Time, mayLackRoot func(metav1.Object) bool) {
	if !s.ReleasedWhenUnused() {
		return
	}
	if len(s.PromiseUsers) > 0 || s.AwaitsSnapshotOrClone() {
		u.ForgetPromise(s.Host.UID) // the grace period starts again, even if the mark could not be removed yet
	}
	class, err := hostpv.ReadClassParameters(hostpv.ClassOfPromise(s.Host))
	s.Unused.GracePeriod, s.Unused.Unreadable = class.ReleaseGrace, err
	s.Unused.Duration, s.Unused.PodsListed = u.since(s.Host, now)
	s.Unused.MarkOutdated = hostpv.IsReleasingDisk(s.Host) && !s.Unused.PodsListed && s.Leaf != nil && mayLackRoot(s.Leaf)
}
