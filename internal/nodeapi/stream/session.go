package stream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/nodeapi/failure"
)

// Causes of a session's end.
var (
	errIdle      = errors.New("idle")
	errLinkEnded = errors.New("the link to the member ended")
	errTooLong   = errors.New("the member's answer has too long a header")
)

// answerLimit in bytes of what a member sends before it is upgraded, TLS included.
const answerLimit = 512 << 10

// Session is one request that is being proxied. Until it is established, it has a time
// limit; afterwards, an idle timeout.
type Session struct {
	ctx    context.Context //nolint:containedctx // of this very request
	cancel context.CancelCauseFunc
	clock  clock.WithDelayedExecution
	idle   time.Duration
	// below is the client's connection, nil in tests that have none.
	below net.Conn

	setup clock.Timer
	up    atomic.Bool // established

	mu       sync.Mutex
	active   time.Time
	watchdog clock.Timer
	stops    []func() bool
	code     int
	why      string       // of a refusal
	bytes    atomic.Int64 // from the member
}

// Begin a session for a request. The context that it returns, of the request, ends with it;
// below is the client's connection, if it is known.
func Begin(r *http.Request, idle time.Duration, c clock.WithDelayedExecution, below net.Conn) (*Session, *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	return &Session{
		ctx: ctx, cancel: cancel, clock: c, idle: idle, below: below,
		setup: c.AfterFunc(failure.SetupTimeout, func() { cancel(failure.ErrSetupTimeout) }),
	}, r.WithContext(ctx)
}

// Writer is w, observed by the session.
func (s *Session) Writer(w http.ResponseWriter) *Writer {
	return &Writer{ResponseWriter: w, session: s}
}

// Code of the answer.
func (s *Session) Code() int { return s.code }

// Bytes that came from the member.
func (s *Session) Bytes() int64 { return s.bytes.Load() }

// establish ends the time limit of the set-up: the member has answered.
func (s *Session) establish() {
	if !s.up.CompareAndSwap(false, true) {
		return
	}
	s.setup.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = s.clock.Now()
	s.watchdog = s.clock.AfterFunc(s.idle, s.look)
	if s.below != nil { // who writes to a client that reads nothing notices no context
		s.stops = append(s.stops, context.AfterFunc(s.ctx, func() { _ = s.below.Close() }))
	}
}

// look ends the session if nothing has passed for the whole idle timeout.
func (s *Session) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	quiet := s.clock.Since(s.active)
	if quiet >= s.idle {
		s.cancel(errIdle)
		return
	}
	s.watchdog = s.clock.AfterFunc(s.idle-quiet, s.look)
}

// touch notes that bytes have passed, in either direction.
func (s *Session) touch() {
	s.mu.Lock()
	s.active = s.clock.Now()
	s.mu.Unlock()
}

// End releases what the session holds.
func (s *Session) End() {
	s.setup.Stop()
	s.mu.Lock()
	if s.watchdog != nil {
		s.watchdog.Stop()
	}
	stops := s.stops
	s.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	s.cancel(nil)
}

// Outcome for the audit line.
func (s *Session) Outcome() string {
	switch cause := context.Cause(s.ctx); {
	case s.why != "":
		return s.why
	case errors.Is(cause, errIdle), errors.Is(cause, errLinkEnded), errors.Is(cause, failure.ErrSetupTimeout):
		return cause.Error()
	case cause != nil:
		return "the client left"
	}
	return "ended"
}

// around makes the connections to the member end with the session, and bounds what comes
// before the upgrade.
func (s *Session) around(dial member.Dial) member.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.stops = append(s.stops, context.AfterFunc(s.ctx, func() { _ = conn.Close() })) //nolint:contextcheck // the session outlives the dial
		s.mu.Unlock()
		return &memberConn{Conn: conn, session: s}, nil
	}
}

// memberConn is the connection to the member of an upgraded session.
type memberConn struct {
	net.Conn
	session *Session
	read    int64 // before the session was established
}

// Read implements net.Conn.
func (c *memberConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.session.touch()
	c.session.bytes.Add(int64(n))
	if !c.session.up.Load() {
		if c.read += int64(n); c.read > answerLimit {
			return 0, errTooLong
		}
	}
	return n, err
}

// Write implements net.Conn.
func (c *memberConn) Write(p []byte) (int, error) {
	c.session.touch()
	return c.Conn.Write(p)
}

// body is the answer to a request for logs.
type body struct {
	io.ReadCloser
	session *Session
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.session.touch()
	b.session.bytes.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) && b.session.ctx.Err() != nil {
		err = context.Canceled // the audit line has the cause, and the proxy logs no other error
	}
	return n, err //nolint:wrapcheck // a reader's errors are as they are
}

// Writer is the answer to the client, until it is hijacked.
type Writer struct {
	http.ResponseWriter
	session *Session
	// failed makes a failure of a member's answer that is no upgrade.
	failed func(code int, body []byte) *failure.Failure
}

// Refused notes why the request was refused, for the audit line.
func (w *Writer) Refused(why string) { w.session.why = why }

// Unwrap lets http.ResponseController flush.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *Writer) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(code int) {
	w.session.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Hijack implements http.Hijacker: the member has answered.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over the connection: %w", err)
	}
	w.session.establish()
	// What the client sent ahead of the answer is the stream's.
	return &clientConn{Conn: conn, reader: buffered.Reader, writer: w}, buffered, nil
}

// clientConn is the client's connection after it was hijacked. A member's answer that is
// no upgrade is kept until its end, and told as a failure of ours.
type clientConn struct {
	net.Conn
	reader *bufio.Reader
	writer *Writer

	decided, refused bool
	answer           bytes.Buffer
	once             sync.Once
}

// switching is how an answer begins that upgrades.
var switching = []byte("HTTP/1.1 101")

// Read implements net.Conn.
func (c *clientConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// Write implements net.Conn.
func (c *clientConn) Write(p []byte) (int, error) {
	if !c.decided {
		c.decided, c.refused = true, !bytes.HasPrefix(p, switching)
		c.writer.session.code = http.StatusSwitchingProtocols
	}
	if !c.refused {
		return c.Conn.Write(p)
	}
	if c.answer.Len()+len(p) > answerLimit {
		return 0, errTooLong
	}
	return c.answer.Write(p)
}

// Close implements net.Conn.
func (c *clientConn) Close() error {
	c.once.Do(func() {
		if c.refused {
			c.tell()
		}
	})
	return c.Conn.Close()
}

// tell the client why the member did not upgrade.
func (c *clientConn) tell() {
	failed := &failure.Failure{Code: http.StatusBadGateway, Message: "the member's answer cannot be read. Try again"}
	if response, err := http.ReadResponse(bufio.NewReader(&c.answer), nil); err == nil {
		content, _ := io.ReadAll(io.LimitReader(response.Body, complaintLimit))
		_ = response.Body.Close()
		failed = c.writer.failed(response.StatusCode, content)
	}
	c.writer.session.code, c.writer.session.why = failed.Code, failed.Line()
	content := failed.Status()
	answer := &http.Response{
		StatusCode: failed.Code, ProtoMajor: 1, ProtoMinor: 1, Close: true,
		Header:        http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(content))}},
		ContentLength: int64(len(content)), Body: io.NopCloser(bytes.NewReader(content)),
	}
	_ = answer.Write(c.Conn)
}
