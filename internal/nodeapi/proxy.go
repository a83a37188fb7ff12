package nodeapi

import (
	"context"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/util/proxy"

	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

const (
	// complaintLimit in bytes of what a member answers instead of a stream.
	complaintLimit = 64 << 10
	// causeLimit in bytes of why a member could not be reached.
	causeLimit = 512
)

// proxy the request to the member, and return when the stream has ended.
func (s *Server) proxy(w *writer, r *http.Request, c call, t target) {
	release, failed := s.sessions.take(t.registration)
	if failed != nil {
		failed.write(w, c.streams())
		return
	}
	defer release()
	gauge := openSessions.WithLabelValues(t.registration, c.subresource)
	gauge.Inc()
	defer gauge.Dec()
	one := w.session
	stop := context.AfterFunc(t.up.ctx, func() { one.cancel(errLinkEnded) }) //nolint:contextcheck // the link ends its sessions
	defer stop()

	location := t.up.streams.Location("api", "v1", "namespaces", c.pod.Namespace, "pods", c.pod.Name, c.subresource)
	location.RawQuery = c.query.Encode()
	request := r.Clone(r.Context())
	request.URL, request.Host, request.Body, request.ContentLength = location, location.Host, http.NoBody, 0
	request.Header, request.Trailer, request.TransferEncoding = c.headers(r.Header), nil, nil
	request.RemoteAddr = "" // the member is not told who asks

	says := func(code int, content []byte) *failure {
		return answered(t.registration, t.up.streams.Token(), code, content)
	}
	w.failed = says
	handler := proxy.NewUpgradeAwareHandler(location, &logs{session: one, c: c, t: t, says: says}, false, c.streams(), &responder{s, c, t})
	handler.UseLocationHost = true
	handler.FlushInterval = -1 // at once
	handler.UpgradeTransport = t.up.streams.Upgrades(one.around)
	handler.ServeHTTP(w, request)
}

// logs is the transport of requests for logs. It answers with the log alone: no header of
// the member reaches the client.
type logs struct {
	session *session
	c       call
	t       target
	says    func(int, []byte) *failure
}

// RoundTrip implements http.RoundTripper.
func (l *logs) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.t.up.streams.Transport().RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		content, _ := io.ReadAll(io.LimitReader(response.Body, complaintLimit))
		_ = response.Body.Close()
		if response.StatusCode == http.StatusForbidden {
			if allowed, err := l.t.up.streams.May(request.Context(), l.c.verb(), l.c.subresource, l.c.pod.Namespace); err == nil && !allowed {
				return nil, lacksRight(l.c, l.t.registration)
			}
		}
		return nil, l.says(response.StatusCode, content)
	}
	l.session.establish()
	response.Header, response.Trailer = http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}}, nil
	response.Body = &body{response.Body, l.session}
	return response, nil
}

// responder answers what was not proxied.
type responder struct {
	s *Server
	c call
	t target
}

// Error implements proxy.ErrorResponder.
func (r *responder) Error(w http.ResponseWriter, request *http.Request, err error) {
	if failed, ok := err.(*failure); ok { //nolint:errorlint // RoundTrip returns it as it is
		failed.write(w, r.c.streams())
		return
	}
	failed := unavailable("member %q cannot be reached: %s. Run kubectl describe clusterregistration %[1]s", r.t.registration, sanitize.Plain(err.Error(), causeLimit))
	r.s.slow(request.Context(), failed).write(w, r.c.streams())
}
