package hostrevision

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
	"github.com/xylem-io/xylem/internal/proof/batch"
)

// errGoneBack reports that the host's revision decreased.
var errGoneBack = errors.New("the host's revision decreased")

// Monitor detects that the host was restored while this process ran. The resourceVersions of one
// etcd only grow (guaranteed by KEP-5504), so a lower one comes from a backup. All members share
// the Monitor. Replicas that do not lead run it too, because they cache the same host. A nil
// Monitor never reports a restore.
type Monitor struct {
	// Live reads from the host, bypassing its cache.
	Live client.Reader
	// Every is the interval at which Start checks the host.
	Every time.Duration
	// Clock measures the interval.
	Clock clock.Clock

	checks batch.Reads[struct{}, struct{}]
	soon   chan struct{} // holds a token once a restore is detected

	mu       sync.Mutex
	highest  uint64
	restored error
}

// New creates a Monitor. It sends no request.
func New(live client.Reader, every time.Duration) *Monitor {
	return &Monitor{Live: live, Every: every, Clock: clock.RealClock{}, soon: make(chan struct{}, 1)}
}

// NeedLeaderElection returns false, because every replica has caches of the host.
func (*Monitor) NeedLeaderElection() bool { return false }

// Start checks the host at intervals. It returns ErrRestored, which ends the process, because
// its caches are wrong after a restore.
func (h *Monitor) Start(ctx context.Context) error {
	for {
		// Ignore other errors and retry: other code reports a host that does not respond.
		if err := h.Check(ctx); errors.Is(err, ErrRestored) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-h.soon:
		case <-h.Clock.After(h.Every):
		}
	}
}

// Check reads the host's revision with a request that begins after the call. Concurrent callers
// share a request. Once a restore is detected, Check always returns ErrRestored.
func (h *Monitor) Check(ctx context.Context) error {
	if h == nil {
		return nil
	}
	if _, err := h.checks.Do(ctx, struct{}{}, func(ctx context.Context) (struct{}, error) { return struct{}{}, h.check(ctx) }); err != nil {
		return err
	}
	return h.Restored()
}

func (h *Monitor) check(ctx context.Context) error {
	h.mu.Lock()
	highest, restored := h.highest, h.restored
	h.mu.Unlock()
	if restored != nil {
		return restored
	}
	revision, err := h.read(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		return fmt.Errorf("read the host's revision: %w", err)
	}
	if revision < highest {
		h.note(fmt.Errorf("%w from %d to %d", errGoneBack, highest, revision))
	}
	h.highest = max(h.highest, revision)
	return h.restored
}

func (h *Monitor) read(ctx context.Context) (uint64, error) {
	var list v1alpha1.ClusterRegistrationList
	if err := h.Live.List(ctx, &list, client.Limit(1)); err != nil {
		return 0, err
	}
	return strconv.ParseUint(list.ResourceVersion, 10, 64)
}

// Highest returns the highest revision seen, or 0.
func (h *Monitor) Highest() uint64 {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.highest
}

// See records the revision of an object that the host sent. So Check detects a restore to any earlier
// state, even if it has not run for a long time.
func (h *Monitor) See(obj runtime.Object) {
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

// Seen wraps the transform of a host's cache, and calls See.
func (h *Monitor) Seen(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		if object, ok := obj.(runtime.Object); ok {
			h.See(object)
		}
		return next(obj)
	}
}

// Restored returns ErrRestored once a restore is detected. It sends no request.
func (h *Monitor) Restored() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.restored
}

// Note records a restore of the host that something other than its revision revealed.
func (h *Monitor) Note(why error) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(why)
}

// note keeps the first cause. The caller holds the lock.
func (h *Monitor) note(why error) {
	if h.restored != nil {
		return
	}
	h.restored = why
	if !errors.Is(why, ErrRestored) {
		h.restored = fmt.Errorf("%w: %w", ErrRestored, why)
	}
	select {
	case h.soon <- struct{}{}:
	default:
	}
}

// Current proves, for a destructive step, that the host was not restored before the reads that
// the step depends on.
func (h *Monitor) Current(ctx context.Context) error {
	err := h.Check(ctx)
	if errors.Is(err, ErrRestored) {
		return fmt.Errorf("%w: %w", guarded.ErrSuspended, err)
	}
	return err
}

// Transport wraps the transport of the host's caches. It checks the revision after each
// response to a list or watch, so that no cache reads from a restored host.
func (h *Monitor) Transport(next http.RoundTripper) http.RoundTripper {
	return &checking{revision: h, next: next}
}

type checking struct {
	revision *Monitor
	next     http.RoundTripper
}

// RoundTrip sends the request, checks the host, and then returns the response.
func (c *checking) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := c.revision.Check(request.Context()); err != nil {
		_ = response.Body.Close() // discarded
		return nil, err
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find the wrapped transport, to cancel a request.
func (c *checking) WrappedRoundTripper() http.RoundTripper { return c.next }

// ErrRestored reports that the host was restored from an older state while this process ran. The
// caches of this process are wrong.
var ErrRestored = errors.New("the host was restored from an older state")
