package budget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/weigh"
)

// MemoryLimits define how much of the manager's memory one member may take.
type MemoryLimits struct {
	// ResponseBytes is the limit for one decoded response, in bytes.
	ResponseBytes int64
	// CacheBytes is the limit for all of a member's cached objects, in bytes.
	CacheBytes int64
}

// DefaultMemoryLimits leave enough memory for the other members if one member uses its limits fully and
// the manager has its default memory limit of 1 GiB. A page of a list, or discovery, takes a few
// MiB. Caches take about 4 KiB per volume.
var DefaultMemoryLimits = MemoryLimits{ResponseBytes: 128 << 20, CacheBytes: 256 << 20}

const (
	// maxInFlightBytes is the maximum total size, in bytes, of a member's responses that are being
	// read.
	maxInFlightBytes = 64 << 20
	// MaxWatchEventBytes is the maximum size, in bytes, of one watch event. etcd limits objects to 1.5 MiB
	// by default, and larger ones are rare.
	MaxWatchEventBytes = 4 << 20
	// decodeBytesPerSecond is how much memory, in bytes per second, the decoding of a member's responses may
	// allocate. decodeBurstBytes is the burst. At this rate, 10,000 Pods and claims take a few seconds to
	// decode.
	decodeBytesPerSecond = 64 << 20
	decodeBurstBytes     = 128 << 20
	// fenceBytesPerSecond is the same for responses to the requests of the fence. These are small, and never wait
	// behind the lists of the caches.
	fenceBytesPerSecond = 4 << 20
)

// MemoryLimiter limits the memory that all responses of one connection take together.
type MemoryLimiter struct {
	MemoryLimits
	scheme *runtime.Scheme
	shapes *weigh.QuantityShapes
	// InFlightBytes is the size of the responses that are being read, in bytes.
	InFlightBytes atomic.Int64
	// decoded limits the rate at which responses are decoded, and fenced those to the fence.
	decoded, fenced *rate.Limiter
	// exceeded receives the first Problem, which ends the link.
	exceeded chan *access.ConnectionProblem
}

// NewMemoryLimiter creates the limiter for one member.
func NewMemoryLimiter(limits MemoryLimits, scheme *runtime.Scheme) *MemoryLimiter {
	return &MemoryLimiter{
		MemoryLimits: limits, scheme: scheme, shapes: weigh.QuantityShapesOf(scheme),
		decoded:  rate.NewLimiter(decodeBytesPerSecond, decodeBurstBytes),
		fenced:   rate.NewLimiter(fenceBytesPerSecond, decodeBurstBytes),
		exceeded: make(chan *access.ConnectionProblem, 1),
	}
}

// metadataScheme are the kinds that the metadata client decodes, in addition to those in the
// connection's scheme.
var metadataScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return scheme
}()

// newObject creates an object of a kind that a client of this connection may decode.
func (l *MemoryLimiter) newObject(kind schema.GroupVersionKind) (runtime.Object, error) {
	if metadataScheme.Recognizes(kind) {
		return metadataScheme.New(kind)
	}
	return l.scheme.New(kind)
}

// EndLinkOverLimit ends the link because the member exceeds a limit.
func (l *MemoryLimiter) EndLinkOverLimit(format string, args ...any) *access.ConnectionProblem {
	p := access.ConnectionProblemf(v1alpha1.ReasonAnswersRefused, "%s. Xylem has closed the connection, and retries every %s", fmt.Sprintf(format, args...), OverLimitPause)
	select {
	case l.exceeded <- p:
	default: // the link is ending already
	}
	return p
}

// WaitUntilExceeded waits until a limit is exceeded, and returns the Problem. If the context ends first, WaitUntilExceeded
// returns nil.
func (l *MemoryLimiter) WaitUntilExceeded(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case p := <-l.exceeded:
		return p
	}
}

// waitForDecodeRate waits until the decoding of weight bytes is within the rate limit.
func (r *countedBody) waitForDecodeRate(ctx context.Context, weight int64) error {
	if err := r.decoded.WaitN(ctx, int(min(weight, decodeBurstBytes))); err != nil {
		return fmt.Errorf("wait until earlier responses from the member are decoded: %w", err)
	}
	return nil
}

// rejectTooLarge returns the Problem for a response that would exceed the limit once decoded.
func (l *MemoryLimiter) rejectTooLarge(what string) *access.ConnectionProblem {
	return l.EndLinkOverLimit("the member's response to %q would take more than %s of memory (--member-answer-limit). If you expect such a response, raise this limit", what, FormatBytes(l.ResponseBytes))
}

// rejectTooLong returns the Problem for a response that is longer than any API server sends.
func (l *MemoryLimiter) rejectTooLong(what string, limit int64) *access.ConnectionProblem {
	return l.EndLinkOverLimit("the member's response to %q is larger than %s, which is more than any API server sends. Check the member's API server, and any proxy in front of it", what, FormatBytes(limit))
}

// rejectMalformed returns the Problem for a response that cannot be parsed.
func (l *MemoryLimiter) rejectMalformed(what string, err error) *access.ConnectionProblem {
	return l.EndLinkOverLimit("the member's response to %q cannot be read: %v. Check the member's API server, and any proxy in front of it", what, err)
}

// FormatBytes formats a number of bytes for people.
func FormatBytes(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// ErrPageTooLarge is returned instead of ending the link if a response exceeds a limit, and the caller will
// request the same objects in smaller pages. See WithDivisiblePage.
var ErrPageTooLarge = errors.New("the page is too large")

// maxDivisiblePageBytes is the maximum size, in bytes, of a page that can be divided. Lists of all kinds are read
// at the same time, and pages of this size do not exceed maxInFlightBytes together.
const maxDivisiblePageBytes = 4 << 20

type divisibleKey struct{}

// WithDivisiblePage marks requests for a page of a list whose caller requests smaller pages after ErrPageTooLarge.
// Tenants choose the sizes of many objects, so no fixed number of objects per page is both safe and fast.
func WithDivisiblePage(ctx context.Context) context.Context {
	return context.WithValue(ctx, divisibleKey{}, true)
}

// countedBody is a response body. Its bytes count as in flight until it is closed.
type countedBody struct {
	io.ReadCloser
	limiter *MemoryLimiter
	decoded *rate.Limiter
	what    string
	read    atomic.Int64
}

// Read implements io.Reader.
func (r *countedBody) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.countInFlight(int64(n)) {
		return 0, r.limiter.EndLinkOverLimit("the member's responses that are being read at the same time, the latest of them to %q, exceed %s in total. Check the member's API server, and any proxy in front of it", r.what, FormatBytes(maxInFlightBytes))
	}
	return n, err
}

// countInFlight counts n bytes as in flight, and reports whether the limit is exceeded.
func (r *countedBody) countInFlight(n int64) bool {
	r.read.Add(n)
	return r.limiter.InFlightBytes.Add(n) > maxInFlightBytes
}

// releaseInFlight stops counting the bytes read so far.
func (r *countedBody) releaseInFlight() { r.limiter.InFlightBytes.Add(-r.read.Swap(0)) }

// Close implements io.Closer.
func (r *countedBody) Close() error {
	r.releaseInFlight()
	return r.ReadCloser.Close()
}

// OverLimitPause is the delay before a new connection after a member exceeded a limit. It lets the
// garbage collector free the memory.
const OverLimitPause = time.Minute
