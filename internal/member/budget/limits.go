package budget

import (
	"context"
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
)

// Limits are how much memory of the manager one member may take.
type Limits struct {
	// Answer in bytes of memory of one decoded answer.
	Answer int64
	// Cache in bytes of memory of all objects of a member in caches.
	Cache int64
}

// DefaultLimits leave a manager with the shipped limit of 1 GiB enough for the
// other members while one of them takes all that it may. Answers hold a list's
// page, or discovery, of a few MiB; caches about 4 KiB for each volume.
var DefaultLimits = Limits{Answer: 128 << 20, Cache: 256 << 20}

const (
	// inFlightLimit in bytes of all answers of a member that are being read.
	inFlightLimit = 64 << 20
	// FrameLimit in bytes of one event of a watch: etcd takes objects of 1.5 MiB
	// by default, and larger ones are rare.
	FrameLimit = 4 << 20
	// decodeRate in bytes of memory a second that a member's answers may decode
	// into, and decodeBurst at once: 10,000 Pods and claims in a few seconds.
	decodeRate  = 64 << 20
	decodeBurst = 128 << 20
)

// Limiter bounds what a member's answers take, all of a connection's together.
type Limiter struct {
	Limits
	scheme *runtime.Scheme
	// InFlight are the bytes that were read of answers that are not done with.
	InFlight atomic.Int64
	// decoded paces what is handed to decoders.
	decoded *rate.Limiter
	// exceeded has the first Problem, which ends the link.
	exceeded chan *access.Problem
}

// NewLimiter makes the limiter of one member.
func NewLimiter(limits Limits, scheme *runtime.Scheme) *Limiter {
	return &Limiter{
		Limits: limits, scheme: scheme,
		decoded:  rate.NewLimiter(decodeRate, decodeBurst),
		exceeded: make(chan *access.Problem, 1),
	}
}

// metadataKinds are what the metadata client decodes, besides a connection's scheme.
var metadataKinds = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return scheme
}()

// object of a kind that a client of this connection may decode.
func (l *Limiter) object(kind schema.GroupVersionKind) (runtime.Object, error) {
	if metadataKinds.Recognizes(kind) {
		return metadataKinds.New(kind)
	}
	return l.scheme.New(kind)
}

// Exceed ends the link: the member takes more than its part.
func (l *Limiter) Exceed(format string, args ...any) *access.Problem {
	p := access.Problemf(v1alpha1.ReasonAnswersRefused, "%s. Xylem closed the connection, and tries again every %s", fmt.Sprintf(format, args...), OverLimitPause)
	select {
	case l.exceeded <- p:
	default: // it ends already
	}
	return p
}

// Watch returns the Problem when the limit is exceeded, nil when the context ends.
func (l *Limiter) Watch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case p := <-l.exceeded:
		return p
	}
}

// pace waits until so much may be decoded.
func (l *Limiter) pace(ctx context.Context, weight int64) error {
	if err := l.decoded.WaitN(ctx, int(min(weight, decodeBurst))); err != nil {
		return fmt.Errorf("wait until earlier answers of the member are decoded: %w", err)
	}
	return nil
}

// tooLarge is the Problem of an answer that would take too much once decoded.
func (l *Limiter) tooLarge(what string) *access.Problem {
	return l.Exceed("the member's answer to %q would take more than %s of memory (--member-answer-limit). If that is right, raise the flag", what, Size(l.Answer))
}

// tooLong is the Problem of an answer that is longer than any API server's.
func (l *Limiter) tooLong(what string, limit int64) *access.Problem {
	return l.Exceed("the member's answer to %q has more than %s, which no API server sends. Check the member's API server, and any proxy in front of it", what, Size(limit))
}

// malformed is the Problem of an answer that is not what it says.
func (l *Limiter) malformed(what string, err error) *access.Problem {
	return l.Exceed("the member's answer to %q cannot be read: %v. Check the member's API server, and any proxy in front of it", what, err)
}

// Size in bytes, for people to read.
func Size(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// reading is a body whose bytes count as in flight until it is closed.
type reading struct {
	io.ReadCloser
	limiter *Limiter
	what    string
	read    atomic.Int64
}

// Read implements io.Reader.
func (r *reading) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.keep(int64(n)) {
		return 0, r.limiter.Exceed("the member's answers that are being read together, the last of them to %q, have more than %s. Check the member's API server, and any proxy in front of it", r.what, Size(inFlightLimit))
	}
	return n, err
}

// keep counts bytes that are kept, and reports whether there are too many.
func (r *reading) keep(n int64) bool {
	r.read.Add(n)
	return r.limiter.InFlight.Add(n) > inFlightLimit
}

// drop counts all as done with.
func (r *reading) drop() { r.limiter.InFlight.Add(-r.read.Swap(0)) }

// Close implements io.Closer.
func (r *reading) Close() error {
	r.drop()
	return r.ReadCloser.Close()
}

// OverLimitPause is after a member took more memory than it may: what it sent
// until then is garbage first.
const OverLimitPause = time.Minute
