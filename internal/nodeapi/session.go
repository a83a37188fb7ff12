package nodeapi

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
)

// Reasons why a session ends.
var (
	errIdle      = errors.New("idle")
	errLinkEnded = errors.New("the link to the member ended")
	errTooLong   = errors.New("the header of the member's response is too long")
)

// preUpgradeLimit is the maximum number of bytes, including TLS, that a member may send before the
// upgrade.
const preUpgradeLimit = 512 << 10

// Session is one proxied request. A setup timeout applies until it is established, and an idle
// timeout afterwards.
type Session struct {
	ctx    context.Context //nolint:containedctx // of this very request
	cancel context.CancelCauseFunc
	clock  clock.WithDelayedExecution
	idle   time.Duration
	// clientConnection is the client's connection. It may be nil in tests.
	clientConnection net.Conn

	setup       clock.Timer
	established atomic.Bool // established

	mu             sync.Mutex
	active         time.Time
	watchdog       clock.Timer
	stops          []func() bool
	code           int
	refusalMessage string       // why the request was refused
	bytes          atomic.Int64 // received from the member
}

// BeginSession begins a session. The returned request's context ends with the session. below is the
// client's connection, or nil if it is unknown.
func BeginSession(r *http.Request, idle time.Duration, c clock.WithDelayedExecution, below net.Conn) (*Session, *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	return &Session{
		ctx: ctx, cancel: cancel, clock: c, idle: idle, clientConnection: below,
		setup: c.AfterFunc(SetupTimeout, func() { cancel(ErrSetupTimeout) }),
	}, r.WithContext(ctx)
}

// WrapWriter returns a response writer that the session observes.
func (s *Session) WrapWriter(w http.ResponseWriter) *Writer {
	return &Writer{ResponseWriter: w, session: s}
}

// StatusCode returns the HTTP status of the response.
func (s *Session) StatusCode() int { return s.code }

// ReceivedBytes returns the number of bytes received from the member.
func (s *Session) ReceivedBytes() int64 { return s.bytes.Load() }

// markEstablished replaces the setup timeout with the idle timeout once the member has responded.
func (s *Session) markEstablished() {
	if !s.established.CompareAndSwap(false, true) {
		return
	}
	s.setup.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = s.clock.Now()
	s.watchdog = s.clock.AfterFunc(s.idle, s.checkIdle)
	if s.clientConnection != nil { // only closing the connection ends a write that blocks because the client does not read
		s.stops = append(s.stops, context.AfterFunc(s.ctx, func() { _ = s.clientConnection.Close() }))
	}
}

// checkIdle ends the session if no data was transferred within the idle timeout.
func (s *Session) checkIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	quiet := s.clock.Since(s.active)
	if quiet >= s.idle {
		s.cancel(errIdle)
		return
	}
	s.watchdog = s.clock.AfterFunc(s.idle-quiet, s.checkIdle)
}

// recordTransfer records that data was transferred in either direction.
func (s *Session) recordTransfer() {
	s.mu.Lock()
	s.active = s.clock.Now()
	s.mu.Unlock()
}

// EndSession releases the session's resources.
func (s *Session) EndSession() {
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

// AuditOutcome returns why the session ended, for the audit log.
func (s *Session) AuditOutcome() string {
	switch cause := context.Cause(s.ctx); {
	case s.refusalMessage != "":
		return s.refusalMessage
	case errors.Is(cause, errIdle), errors.Is(cause, errLinkEnded), errors.Is(cause, ErrSetupTimeout):
		return cause.Error()
	case cause != nil:
		return "the client disconnected"
	}
	return "ended"
}

// wrapDial wraps dial: it closes the connection to the member when the session ends, and limits the
// bytes before the upgrade.
func (s *Session) wrapDial(dial member.DialFunc) member.DialFunc {
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

// memberConn is an upgraded session's connection to the member.
type memberConn struct {
	net.Conn
	session            *Session
	bytesBeforeUpgrade int64 // bytes before the session was established
}

// Read implements net.Conn.
func (c *memberConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.session.recordTransfer()
	c.session.bytes.Add(int64(n))
	if !c.session.established.Load() {
		if c.bytesBeforeUpgrade += int64(n); c.bytesBeforeUpgrade > preUpgradeLimit {
			return 0, errTooLong
		}
	}
	return n, err
}

// Write implements net.Conn.
func (c *memberConn) Write(p []byte) (int, error) {
	c.session.recordTransfer()
	return c.Conn.Write(p)
}

// logBody is the body of a response to a request for logs.
type logBody struct {
	io.ReadCloser
	session *Session
}

// Read implements io.Reader.
func (b *logBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.session.recordTransfer()
	b.session.bytes.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) && b.session.ctx.Err() != nil {
		err = context.Canceled // the proxy does not log this error; the audit log has the cause
	}
	return n, err //nolint:wrapcheck // io.Reader errors must not be wrapped
}

// Writer writes the response to the client until it is hijacked.
type Writer struct {
	http.ResponseWriter
	session *Session
	// toFailure converts a member's error response to a failure.
	toFailure func(code int, body []byte) *Failure
}

// Refused records why the request was refused, for the audit log.
func (w *Writer) Refused(why string) { w.session.refusalMessage = why }

// Unwrap lets http.ResponseController find the wrapped writer's methods.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *Writer) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(code int) {
	w.session.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Hijack implements http.Hijacker. The proxy calls it once the member has responded.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("hijack the connection: %w", err)
	}
	w.session.markEstablished()
	// The buffer contains data that the client sent before the upgrade. The data belongs to the
	// stream.
	return &clientConn{Conn: conn, reader: buffered.Reader, writer: w}, buffered, nil
}

// clientConn is the client's connection after the hijack. It buffers a response without an upgrade
// and replaces it with a Failure.
type clientConn struct {
	net.Conn
	reader *bufio.Reader
	writer *Writer

	decided, refused bool
	answer           bytes.Buffer
	once             sync.Once
}

// upgradePrefix is the beginning of a response with an upgrade.
var upgradePrefix = []byte("HTTP/1.1 101")

// Read implements net.Conn.
func (c *clientConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// Write implements net.Conn.
func (c *clientConn) Write(p []byte) (int, error) {
	if !c.decided {
		c.decided, c.refused = true, !bytes.HasPrefix(p, upgradePrefix)
		c.writer.session.code = http.StatusSwitchingProtocols
	}
	if !c.refused {
		return c.Conn.Write(p)
	}
	if c.answer.Len()+len(p) > preUpgradeLimit {
		return 0, errTooLong
	}
	return c.answer.Write(p)
}

// Close implements net.Conn.
func (c *clientConn) Close() error {
	c.once.Do(func() {
		if c.refused {
			c.sendFailure()
			return
		}
		c.lingerUntilClosed()
	})
	return c.Conn.Close()
}

// lingerTimeout is how long a client may take to receive the rest of a stream that has ended.
const lingerTimeout = 10 * time.Second

// lingerUntilClosed signals to the client that the stream has ended, and waits until the client closes the
// connection. If the connection were closed at once, the client's next ping would reset it, and the
// client's kernel would discard what the client has not read yet. The client would then report
// success, although the end of the output is missing.
func (c *clientConn) lingerUntilClosed() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	limit := c.writer.session.clock.AfterFunc(lingerTimeout, func() { _ = c.Conn.Close() })
	defer limit.Stop()
	_, _ = io.Copy(io.Discard, c.Conn) // ends with the client's connection, the timeout or the session
}

// sendFailure sends the client a failure that explains why the member did not upgrade the connection.
func (c *clientConn) sendFailure() {
	failed := &Failure{Code: http.StatusBadGateway, Message: "Xylem cannot read the member's response. Try again"}
	if response, err := http.ReadResponse(bufio.NewReader(&c.answer), nil); err == nil {
		content, _ := io.ReadAll(io.LimitReader(response.Body, errorResponseLimit))
		_ = response.Body.Close()
		failed = c.writer.toFailure(response.StatusCode, content)
	}
	c.writer.session.code, c.writer.session.refusalMessage = failed.Code, failed.MessageLine()
	content := failed.StatusJSON()
	answer := &http.Response{
		StatusCode: failed.Code, ProtoMajor: 1, ProtoMinor: 1, Close: true,
		Header:        http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(content))}},
		ContentLength: int64(len(content)), Body: io.NopCloser(bytes.NewReader(content)),
	}
	_ = answer.Write(c.Conn)
}
