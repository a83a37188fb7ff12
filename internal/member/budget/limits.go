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

// Limits define how much of the manager's memory one member may take.
type Limits struct {
	// Answer is the limit for one decoded response, in bytes.
	Answer int64
	// Cache is the limit for all of a member's cached objects, in bytes.
	Cache int64
}

// DefaultLimits leave enough memory for the other members if one member uses its limits fully and
// the manager has its default memory limit of 1 GiB. A page of a list, or discovery, takes a few
// MiB. Caches take about 4 KiB per volume.
var DefaultLimits = Limits{Answer: 128 << 20, Cache: 256 << 20}

const (
	// inFlightLimit is the maximum total size, in bytes, of a member's responses that are being
	// read.
	inFlightLimit = 64 << 20
	// FrameLimit is the maximum size, in bytes, of one watch event. etcd limits objects to 1.5 MiB
	// by default, and larger ones are rare.
	FrameLimit = 4 << 20
	// decodeRate is how much memory, in bytes per second, the decoding of a member's responses may
	// allocate. decodeBurst is the burst. At this rate, 10,000 Pods and claims take a few seconds to
	// decode.
	decodeRate  = 64 << 20
	decodeBurst = 128 << 20
	// fenceRate is the same for responses to the requests of the fence. These are small, and never wait
	// behind the lists of the caches.
	fenceRate = 4 << 20
)

// Limiter limits the memory that all responses of one connection take together.
type Limiter struct {
	Limits
	scheme *runtime.Scheme
	shapes *weigh.Shapes
	// InFlight is the size of the responses that are being read, in bytes.
	InFlight atomic.Int64
	// decoded limits the rate at which responses are decoded, and fenced those to the fence.
	decoded, fenced *rate.Limiter
	// exceeded receives the first Problem, which ends the link.
	exceeded chan *access.Problem
}

// NewLimiter creates the limiter for one member.
func NewLimiter(limits Limits, scheme *runtime.Scheme) *Limiter {
	return &Limiter{
		Limits: limits, scheme: scheme, shapes: weigh.ShapesOf(scheme),
		decoded:  rate.NewLimiter(decodeRate, decodeBurst),
		fenced:   rate.NewLimiter(fenceRate, decodeBurst),
		exceeded: make(chan *access.Problem, 1),
	}
}

// metadataKinds are the kinds that the metadata client decodes, in addition to those in the
// connection's scheme.
var metadataKinds = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return scheme
}()

// object creates an object of a kind that a client of this connection may decode.
func (l *Limiter) object(kind schema.GroupVersionKind) (runtime.Object, error) {
	if metadataKinds.Recognizes(kind) {
		return metadataKinds.New(kind)
	}
	return l.scheme.New(kind)
}

// Exceed ends the link because the member exceeds a limit.
func (l *Limiter) Exceed(format string, args ...any) *access.Problem {
	p := access.Problemf(v1alpha1.ReasonAnswersRefused, "%s. Xylem has closed the connection, and retries every %s", fmt.Sprintf(format, args...), OverLimitPause)
	select {
	case l.exceeded <- p:
	default: // the link is ending already
	}
	return p
}

// Watch waits until a limit is exceeded, and returns the Problem. If the context ends first, Watch
// returns nil.
func (l *Limiter) Watch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case p := <-l.exceeded:
		return p
	}
}

// pace waits until the decoding of weight bytes is within the rate limit.
func (r *reading) pace(ctx context.Context, weight int64) error {
	if err := r.decoded.WaitN(ctx, int(min(weight, decodeBurst))); err != nil {
		return fmt.Errorf("wait until earlier responses from the member are decoded: %w", err)
	}
	return nil
}

// tooLarge returns the Problem for a response that would exceed the limit once decoded.
func (l *Limiter) tooLarge(what string) *access.Problem {
	return l.Exceed("the member's response to %q would take more than %s of memory (--member-answer-limit). If you expect such a response, raise this limit", what, Size(l.Answer))
}

// tooLong returns the Problem for a response that is longer than any API server sends.
func (l *Limiter) tooLong(what string, limit int64) *access.Problem {
	return l.Exceed("the member's response to %q is larger than %s, which is more than any API server sends. Check the member's API server, and any proxy in front of it", what, Size(limit))
}

// malformed returns the Problem for a response that cannot be parsed.
func (l *Limiter) malformed(what string, err error) *access.Problem {
	return l.Exceed("the member's response to %q cannot be read: %v. Check the member's API server, and any proxy in front of it", what, err)
}

// Size formats a number of bytes for people.
func Size(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// ErrDivide is returned instead of ending the link if a response exceeds a limit, and the caller will
// request the same objects in smaller pages. See Divisible.
var ErrDivide = errors.New("the page is too large")

// pageBytes is the maximum size, in bytes, of a page that can be divided. Lists of all kinds are read
// at the same time, and pages of this size do not exceed inFlightLimit together.
const pageBytes = 4 << 20

type divisible struct{}

// Divisible marks requests for a page of a list whose caller requests smaller pages after ErrDivide.
// Tenants choose the sizes of many objects, so no fixed number of objects per page is both safe and fast.
func Divisible(ctx context.Context) context.Context {
	return context.WithValue(ctx, divisible{}, true)
}

// reading is a response body. Its bytes count as in flight until it is closed.
type reading struct {
	io.ReadCloser
	limiter *Limiter
	decoded *rate.Limiter
	what    string
	read    atomic.Int64
}

// Read implements io.Reader.
func (r *reading) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.keep(int64(n)) {
		return 0, r.limiter.Exceed("the member's responses that are being read at the same time, the latest of them to %q, exceed %s in total. Check the member's API server, and any proxy in front of it", r.what, Size(inFlightLimit))
	}
	return n, err
}

// keep counts n bytes as in flight, and reports whether the limit is exceeded.
func (r *reading) keep(n int64) bool {
	r.read.Add(n)
	return r.limiter.InFlight.Add(n) > inFlightLimit
}

// drop stops counting the bytes read so far.
func (r *reading) drop() { r.limiter.InFlight.Add(-r.read.Swap(0)) }

// Close implements io.Closer.
func (r *reading) Close() error {
	r.drop()
	return r.ReadCloser.Close()
}

// OverLimitPause is the delay before a new connection after a member exceeded a limit. It lets the
// garbage collector free the memory.
const OverLimitPause = time.Minute
