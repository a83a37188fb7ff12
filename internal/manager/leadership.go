package manager

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
	// RenewDeadline is the time after which a leader that could not renew its Lease steps down.
	RenewDeadline = 10 * time.Second
	// LeaseDuration is how long other replicas wait after the last renewal.
	LeaseDuration = 15 * time.Second
	// CallTimeout bounds every request to the host except watches, so that a leader's last request
	// fails before another replica can lead. The API server may queue a request for a quarter of
	// this time.
	CallTimeout = LeaseDuration - RenewDeadline
)

// LeaderLock is the lock for leader election. It records when the Lease was last renewed. A process that
// was frozen until its Lease expired does not detect the new leader before its next renewal. Until
// then, the lock's transport rejects writes to the host, as the fences reject writes to members.
type LeaderLock struct {
	resourcelock.Interface
	clock clock.PassiveClock
	// onHostRestored reports that the host was restored while this process ran.
	onHostRestored func(error)

	mu          sync.Mutex
	renewed     time.Time
	lastWritten resourcelock.LeaderElectionRecord // last acknowledged write
}

// New creates a lock that uses the Lease with the given name. It calls restored if it detects that
// the host was restored while this process ran.
func New(config *rest.Config, namespace, name, identity string, restored func(error)) (*LeaderLock, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = RenewDeadline / 2 // one hanging request must not end the leadership
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for leader election: %w", err)
	}
	coordination, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for leader election: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, name, core, coordination,
		resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, fmt.Errorf("create the lock for leader election: %w", err)
	}
	return &LeaderLock{Interface: lock, clock: clock.RealClock{}, onHostRestored: restored}, nil
}

// errLeaseWentBack reports that the host was restored. The Lease proves this even if the restore
// raised the host's revision, because only a backup contains an older state of the Lease.
var errLeaseWentBack = errors.New("the leader election Lease is older than this manager's last write to it")

// Get reads the Lease. The elector calls Get after a renewal fails with a conflict.
func (l *LeaderLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	written := l.lastWritten
	l.mu.Unlock()
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && leaseWentBack(written, *record) {
		l.onHostRestored(errLeaseWentBack)
	}
	return record, raw, err //nolint:wrapcheck // the elector checks the error
}

// leaseWentBack reports whether a Lease is older than an acknowledged write of this process. A Lease
// that was deleted and re-created is not older, because its holder acquired it later. The API
// server truncates times to microseconds. leaseWentBack is a pure function.
func leaseWentBack(written, read resourcelock.LeaderElectionRecord) bool {
	switch written.HolderIdentity {
	case "":
		return false
	case read.HolderIdentity:
		return read.RenewTime.Time.Before(written.RenewTime.Truncate(time.Microsecond))
	}
	return read.LeaderTransitions < written.LeaderTransitions && read.AcquireTime.Before(&written.AcquireTime)
}

// Create creates the Lease.
func (l *LeaderLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.writeRecord(ctx, record, l.Interface.Create)
}

// Update acquires, renews or releases the Lease.
func (l *LeaderLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.writeRecord(ctx, record, l.Interface.Update)
}

func (l *LeaderLock) writeRecord(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	sent := l.clock.Now()
	if err := do(ctx, record); err != nil {
		return err
	}
	if record.HolderIdentity != l.Identity() {
		sent = time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed, l.lastWritten = sent, record
	return nil
}

// CheckRenewed returns nil if the Lease was renewed recently, according to both the monotonic and the
// wall clock. Otherwise, the error wraps guarded.ErrFenced.
func (l *LeaderLock) CheckRenewed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if now.Sub(l.renewed) > RenewDeadline || now.Round(0).Sub(l.renewed.Round(0)) > RenewDeadline {
		return fmt.Errorf("%w: this process is not the leader, or has not renewed its leadership in time", guarded.ErrFenced)
	}
	return nil
}

// WrapTransport rejects requests that change the host while CheckRenewed returns an error.
func (l *LeaderLock) WrapTransport(next http.RoundTripper) http.RoundTripper {
	return &fencingTransport{l, next}
}

type fencingTransport struct {
	lock *LeaderLock
	next http.RoundTripper
}

// RoundTrip sends the request unless WrapTransport rejects it.
func (f *fencingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if isWriteRequest(request) {
		if err := f.lock.CheckRenewed(); err != nil {
			return nil, err
		}
	}
	return f.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the wrapped transport, to cancel a request.
func (f *fencingTransport) WrappedRoundTripper() http.RoundTripper { return f.next }

// isWriteRequest reports whether a request is a write. TokenReviews and SubjectAccessReviews are not
// writes, and serving metrics needs them.
func isWriteRequest(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !strings.HasPrefix(request.URL.Path, "/apis/authentication.k8s.io/") && !strings.HasPrefix(request.URL.Path, "/apis/authorization.k8s.io/")
}
