package stream

import (
	"context"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/util/proxy"

	"github.com/xylem-io/xylem/internal/mirror/sanitize"
	"github.com/xylem-io/xylem/internal/nodeapi/call"
	"github.com/xylem-io/xylem/internal/nodeapi/failure"
	"github.com/xylem-io/xylem/internal/nodeapi/lookup"
)

const (
	// complaintLimit is the maximum size in bytes of a member's error response.
	complaintLimit = 64 << 10
	// causeLimit is the maximum size in bytes of the error from connecting to a member.
	causeLimit = 512
)

// Proxy proxies the request to the member and returns when the stream has ended.
func (s *Sessions) Proxy(w *Writer, r *http.Request, c call.Call, t lookup.Target) {
	release, failed := s.Take(t.Registration, c.Pod.Namespace)
	if failed != nil {
		failed.Write(w, c.Streams())
		return
	}
	defer release()
	gauge := openSessions.WithLabelValues(t.Registration, c.Subresource)
	gauge.Inc()
	defer gauge.Dec()
	one := w.session
	stop := context.AfterFunc(t.Up.Ended(), func() { one.cancel(errLinkEnded) }) //nolint:contextcheck // the link ends its sessions
	defer stop()

	location := t.Up.Streams.Location("api", "v1", "namespaces", c.Pod.Namespace, "pods", c.Pod.Name, c.Subresource)
	location.RawQuery = c.Query.Encode()
	request := r.Clone(r.Context())
	request.URL, request.Host, request.Body, request.ContentLength = location, location.Host, http.NoBody, 0
	request.Header, request.Trailer, request.TransferEncoding = c.Headers(r.Header), nil, nil
	request.RemoteAddr = "" // do not reveal the caller's address to the member

	fail := func(code int, content []byte) *failure.Failure {
		return failure.Answered(t.Registration, t.Up.Streams.Token(), code, content)
	}
	w.failed = fail
	handler := proxy.NewUpgradeAwareHandler(location, &logs{session: one, c: c, t: t, fail: fail}, false, c.Streams(), &responder{c, t})
	handler.UseLocationHost = true
	handler.FlushInterval = -1 // flushes immediately
	handler.UpgradeTransport = t.Up.Streams.Upgrades(one.around)
	handler.ServeHTTP(w, request)
}

// logs is the transport of requests for logs. It returns only the body of the member's response, so
// none of its headers reach the client.
type logs struct {
	session *Session
	c       call.Call
	t       lookup.Target
	fail    func(int, []byte) *failure.Failure
}

// RoundTrip implements http.RoundTripper.
func (l *logs) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.t.Up.Streams.Transport().RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		content, _ := io.ReadAll(io.LimitReader(response.Body, complaintLimit))
		_ = response.Body.Close()
		if response.StatusCode == http.StatusForbidden {
			if allowed, err := l.t.Up.Streams.May(request.Context(), l.c.Verb(), l.c.Subresource, l.c.Pod.Namespace); err == nil && !allowed {
				return nil, lookup.MissingPermission(l.c, l.t.Registration)
			}
		}
		return nil, l.fail(response.StatusCode, content)
	}
	l.session.establish()
	response.Header, response.Trailer = http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}}, nil
	response.Body = &body{response.Body, l.session}
	return response, nil
}

// responder writes the error response if the proxy fails.
type responder struct {
	c call.Call
	t lookup.Target
}

// Error implements proxy.ErrorResponder.
func (r *responder) Error(w http.ResponseWriter, request *http.Request, err error) {
	if failed, ok := err.(*failure.Failure); ok { //nolint:errorlint // RoundTrip returns it unwrapped
		failed.Write(w, r.c.Streams())
		return
	}
	failed := failure.Unavailable("member %q cannot be reached: %s. Run kubectl describe clusterregistration %[1]s", r.t.Registration, sanitize.Plain(err.Error(), causeLimit))
	failure.Slow(request.Context(), failed).Write(w, r.c.Streams())
}
