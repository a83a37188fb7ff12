package leadership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/guarded"
)

const (
	// RenewDeadline is how long after the last renewal of its lease the leader
	// gives up by itself.
	RenewDeadline = 10 * time.Second
	// LeaseDuration is how long others wait.
	LeaseDuration = 15 * time.Second
	// CallTimeout bounds every call to the host, watches excepted: what was sent in the
	// last moment of a leadership is given up before another replica can lead. The API
	// server lets a call wait for its turn for a quarter of that.
	CallTimeout = LeaseDuration - RenewDeadline
)

// Lock is the lock of the leader election, and knows when it was last renewed. A process
// that was frozen for longer than its lease lasts finds out only at its next renewal that
// another one leads; until then its transport keeps it from writing to the host, as the
// fences do from writing to members.
type Lock struct {
	resourcelock.Interface
	clock clock.PassiveClock
	// restored makes known that the host was restored under this process.
	restored func(error)

	mu      sync.Mutex
	renewed time.Time
	written resourcelock.LeaderElectionRecord // as last acknowledged
}

// New lock in a Lease of that name; restored is called when the host turns out to have been
// restored under this process.
func New(config *rest.Config, namespace, name, identity string, restored func(error)) (*Lock, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = RenewDeadline / 2 // one request that hangs must not cost the leadership
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for leader election: %w", err)
	}
	coordination, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for leader election: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, name, core, coordination,
		resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, fmt.Errorf("make the lock for leader election: %w", err)
	}
	return &Lock{Interface: lock, clock: clock.RealClock{}, restored: restored}, nil
}

// errLeaseWentBack is a sign of a restored host that shows where the host's revision
// was raised by the restore: only a backup has an older state of this lease.
var errLeaseWentBack = errors.New("the lease of the leader election is older than this manager has left it")

// Get reads the lease, which the elector does when its renewal met with a conflict.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	written := l.written
	l.mu.Unlock()
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && wentBack(written, *record) {
		l.restored(errLeaseWentBack)
	}
	return record, raw, err //nolint:wrapcheck // the elector looks at the error
}

// wentBack reports whether a lease is older than a write that was acknowledged. One
// that was deleted and created again is not: another holder then acquired it later.
// The API server keeps microseconds. Pure.
func wentBack(written, read resourcelock.LeaderElectionRecord) bool {
	switch written.HolderIdentity {
	case "":
		return false
	case read.HolderIdentity:
		return read.RenewTime.Time.Before(written.RenewTime.Truncate(time.Microsecond))
	}
	return read.LeaderTransitions < written.LeaderTransitions && read.AcquireTime.Before(&written.AcquireTime)
}

// Create takes the lease.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update takes, renews or gives back the lease.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *Lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	sent := l.clock.Now()
	if err := do(ctx, record); err != nil {
		return err
	}
	if record.HolderIdentity != l.Identity() {
		sent = time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed, l.written = sent, record
	return nil
}

// Current is nil while the lease was renewed lately, by the monotonic and by the
// wall clock; else it wraps guarded.ErrFenced.
func (l *Lock) Current() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if now.Sub(l.renewed) > RenewDeadline || now.Round(0).Sub(l.renewed.Round(0)) > RenewDeadline {
		return fmt.Errorf("%w: this process does not lead, or has not renewed its leadership in time", guarded.ErrFenced)
	}
	return nil
}

// Transport refuses what would change the host while Current does not hold.
func (l *Lock) Transport(next http.RoundTripper) http.RoundTripper { return &fencing{l, next} }

type fencing struct {
	lock *Lock
	next http.RoundTripper
}

// RoundTrip sends the request unless it is refused.
func (f *fencing) RoundTrip(request *http.Request) (*http.Response, error) {
	if changes(request) {
		if err := f.lock.Current(); err != nil {
			return nil, err
		}
	}
	return f.next.RoundTrip(request)
}

// WrappedRoundTripper is where client-go finds out how to cancel a request.
func (f *fencing) WrappedRoundTripper() http.RoundTripper { return f.next }

// changes distinguishes writes from reads, and from the reviews that serving metrics takes.
func changes(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !strings.HasPrefix(request.URL.Path, "/apis/authentication.k8s.io/") && !strings.HasPrefix(request.URL.Path, "/apis/authorization.k8s.io/")
}
