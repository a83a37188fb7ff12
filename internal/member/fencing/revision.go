package fencing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/proof"
)

// errRevisionDecreased reports that the host's revision decreased.
var errRevisionDecreased = errors.New("the host's revision decreased")

// RevisionMonitor detects that the host was restored while this process ran. The resourceVersions of one
// etcd only grow (guaranteed by KEP-5504), so a lower one comes from a backup. All members share
// the RevisionMonitor. Replicas that do not lead run it too, because they cache the same host. A nil
// Monitor never reports a restore.
type RevisionMonitor struct {
	// Live reads from the host, bypassing its cache.
	Live client.Reader
	// Interval is the interval at which Start checks the host.
	Interval time.Duration
	// Clock measures the interval.
	Clock clock.Clock

	checks   proof.SharedReads[struct{}, struct{}]
	detected chan struct{} // holds a token once a restore is detected

	mu       sync.Mutex
	highest  uint64
	restored error
}

// NewRevisionMonitor creates a RevisionMonitor. It sends no request.
func NewRevisionMonitor(live client.Reader, every time.Duration) *RevisionMonitor {
	return &RevisionMonitor{Live: live, Interval: every, Clock: clock.RealClock{}, detected: make(chan struct{}, 1)}
}

// NeedLeaderElection returns false, because every replica has caches of the host.
func (*RevisionMonitor) NeedLeaderElection() bool { return false }

// Start checks the host at intervals. It returns ErrHostRestored, which ends the process, because
// its caches are wrong after a restore.
func (h *RevisionMonitor) Start(ctx context.Context) error {
	for {
		// Ignore other errors and retry: other code reports a host that does not respond.
		if err := h.CheckRevision(ctx); errors.Is(err, ErrHostRestored) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-h.detected:
		case <-h.Clock.After(h.Interval):
		}
	}
}

// CheckRevision reads the host's revision with a request that begins after the call. Concurrent callers
// share a request. Once a restore is detected, CheckRevision always returns ErrHostRestored.
func (h *RevisionMonitor) CheckRevision(ctx context.Context) error {
	if h == nil {
		return nil
	}
	if _, err := h.checks.Do(ctx, struct{}{}, func(ctx context.Context) (struct{}, error) { return struct{}{}, h.checkRevisionLive(ctx) }); err != nil {
		return err
	}
	return h.RestoreError()
}

func (h *RevisionMonitor) checkRevisionLive(ctx context.Context) error {
	h.mu.Lock()
	highest, restored := h.highest, h.restored
	h.mu.Unlock()
	if restored != nil {
		return restored
	}
	revision, err := h.readLiveRevision(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		return fmt.Errorf("read the host's revision: %w", err)
	}
	if revision < highest {
		h.recordRestoreLocked(fmt.Errorf("%w from %d to %d", errRevisionDecreased, highest, revision))
	}
	h.highest = max(h.highest, revision)
	return h.restored
}

func (h *RevisionMonitor) readLiveRevision(ctx context.Context) (uint64, error) {
	var list v1alpha1.ClusterRegistrationList
	if err := h.Live.List(ctx, &list, client.Limit(1)); err != nil {
		return 0, err
	}
	return strconv.ParseUint(list.ResourceVersion, 10, 64)
}

// HighestRevision returns the highest revision seen, or 0.
func (h *RevisionMonitor) HighestRevision() uint64 {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.highest
}

// RecordRevision records the revision of an object that the host sent. So CheckRevision detects a restore to any earlier
// state, even if it has not run for a long time.
func (h *RevisionMonitor) RecordRevision(obj runtime.Object) {
	object, ok := obj.(client.Object)
	if !ok || h == nil {
		return
	}
	if revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64); err == nil {
		h.mu.Lock()
		h.highest = max(h.highest, revision)
		h.mu.Unlock()
	}
}

// WrapTransform wraps the transform of a host's cache, and calls RecordRevision.
func (h *RevisionMonitor) WrapTransform(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		if object, ok := obj.(runtime.Object); ok {
			h.RecordRevision(object)
		}
		return next(obj)
	}
}

// RestoreError returns ErrHostRestored once a restore is detected. It sends no request.
func (h *RevisionMonitor) RestoreError() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.restored
}

// RecordRestore records a restore of the host that something other than its revision revealed.
func (h *RevisionMonitor) RecordRestore(why error) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recordRestoreLocked(why)
}

// recordRestoreLocked keeps the first cause. The caller holds the lock.
func (h *RevisionMonitor) recordRestoreLocked(why error) {
	if h.restored != nil {
		return
	}
	h.restored = why
	if !errors.Is(why, ErrHostRestored) {
		h.restored = fmt.Errorf("%w: %w", ErrHostRestored, why)
	}
	select {
	case h.detected <- struct{}{}:
	default:
	}
}

// CheckHostCurrent proves, for a destructive step, that the host was not restored before the reads that
// the step depends on.
func (h *RevisionMonitor) CheckHostCurrent(ctx context.Context) error {
	err := h.CheckRevision(ctx)
	if errors.Is(err, ErrHostRestored) {
		return fmt.Errorf("%w: %w", guarded.ErrSuspended, err)
	}
	return err
}

// WrapTransport wraps the transport of the host's caches. It checks the revision after each
// response to a list or watch, so that no cache reads from a restored host.
func (h *RevisionMonitor) WrapTransport(next http.RoundTripper) http.RoundTripper {
	return &checkingTransport{monitor: h, next: next}
}

type checkingTransport struct {
	monitor *RevisionMonitor
	next    http.RoundTripper
}

// RoundTrip sends the request, checks the host, and then returns the response.
func (c *checkingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := c.monitor.CheckRevision(request.Context()); err != nil {
		_ = response.Body.Close() // discarded
		return nil, err
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find the wrapped transport, to cancel a request.
func (c *checkingTransport) WrappedRoundTripper() http.RoundTripper { return c.next }

// ErrHostRestored reports that the host was restored from an older state while this process ran. The
// caches of this process are wrong.
var ErrHostRestored = errors.New("the host was restored from an older state")
