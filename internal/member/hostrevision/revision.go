package hostrevision

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
)

// errGoneBack is what makes a host that was restored known: its revision went back.
var errGoneBack = errors.New("its revision went back")

// Monitor notices that the host was restored under this process: resourceVersions
// of one etcd only grow (KEP-5504 makes that a promise), so one that goes back is from
// a backup. It is shared by all members, and by the replicas that do not lead: their
// caches are of the same host. A nil Monitor knows nothing and denies nothing.
type Monitor struct {
	// Live reads from the host, bypassing its cache.
	Live client.Reader
	// Every is how often the host is asked when nothing else asks.
	Every time.Duration
	// Clock measures that.
	Clock clock.Clock

	turn chan struct{} // held by the one request that is under way
	soon chan struct{} // holds a token if the host was restored

	mu       sync.Mutex
	begun    uint64 // requests
	failed   error  // of the last request
	highest  uint64
	restored error
}

// New creates a Monitor that has asked nothing yet.
func New(live client.Reader, every time.Duration) *Monitor {
	return &Monitor{Live: live, Every: every, Clock: clock.RealClock{}, turn: make(chan struct{}, 1), soon: make(chan struct{}, 1)}
}

// NeedLeaderElection is false: the caches of every replica are of the host.
func (*Monitor) NeedLeaderElection() bool { return false }

// Start asks at intervals. It returns ErrRestored, which ends the process: none
// of its caches can be relied on.
func (h *Monitor) Start(ctx context.Context) error {
	for {
		// A host that does not answer is asked again: others report that.
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

// Check asks the host for its revision, by a request that begins after the call, or
// by one that another caller's need began since. It returns ErrRestored permanently
// once the host went back.
func (h *Monitor) Check(ctx context.Context) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	asked := h.begun
	h.mu.Unlock()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return fmt.Errorf("wait to read the host's revision: %w", ctx.Err())
	}
	h.mu.Lock()
	if h.restored != nil || h.begun > asked && h.failed == nil {
		defer h.mu.Unlock()
		return h.restored
	}
	h.begun++
	highest := h.highest
	h.mu.Unlock()
	revision, err := h.read(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed = err; err != nil {
		return fmt.Errorf("read the host's revision: %w", err)
	}
	if revision < highest {
		h.note(fmt.Errorf("%w: it is %d, and was %d", errGoneBack, revision, highest))
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

// Highest is the highest revision seen; 0 before any was.
func (h *Monitor) Highest() uint64 {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.highest
}

// Seen passes on what a host's cache takes in, and counts it as seen: then a host that
// is restored to any earlier state is behind, however long ago it was asked.
func (h *Monitor) Seen(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		if object, ok := obj.(client.Object); ok && h != nil {
			if revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64); err == nil {
				h.mu.Lock()
				h.highest = max(h.highest, revision)
				h.mu.Unlock()
			}
		}
		return next(obj)
	}
}

// Restored is ErrRestored once the host is known to have been restored. It reads
// memory.
func (h *Monitor) Restored() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.restored
}

// Note makes known that the host was restored, by another sign than its revision.
func (h *Monitor) Note(why error) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(why)
}

// note keeps the first cause; the caller has the lock.
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

// Current proves, for a step that destroys, that the host was not restored before what
// the step was decided on was read.
func (h *Monitor) Current(ctx context.Context) error {
	err := h.Check(ctx)
	if errors.Is(err, ErrRestored) {
		return fmt.Errorf("%w: %w", guarded.ErrSuspended, err)
	}
	return err
}

// Transport is for the watches and lists that fill the host's caches: it checks the
// revision after each answer, so that no cache takes in a host that was restored.
func (h *Monitor) Transport(next http.RoundTripper) http.RoundTripper {
	return &checking{revision: h, next: next}
}

type checking struct {
	revision *Monitor
	next     http.RoundTripper
}

// RoundTrip sends the request, and hands its answer on once the host was checked.
func (c *checking) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := c.revision.Check(request.Context()); err != nil {
		_ = response.Body.Close() // nobody reads it
		return nil, err
	}
	return response, nil
}

// WrappedRoundTripper is where client-go finds out how to cancel a request.
func (c *checking) WrappedRoundTripper() http.RoundTripper { return c.next }

// ErrRestored reports that the host was put back to an older state while this
// process ran: nothing in its caches can be relied on.
var ErrRestored = errors.New("the host was restored from an older state")
