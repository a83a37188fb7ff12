package nodeapi

import (
	"context"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/util/proxy"

	"github.com/xylem-io/xylem/internal/mirror"
)

const (
	// errorResponseLimit is the maximum size in bytes of a member's error response.
	errorResponseLimit = 64 << 10
	// causeLimit is the maximum size in bytes of the error from connecting to a member.
	causeLimit = 512
)

// ProxyCall proxies the request to the member and returns when the stream has ended.
func (s *Sessions) ProxyCall(w *Writer, r *http.Request, c Call, t Target) {
	release, failed := s.OpenSession(t.Registration, c.Pod.Namespace)
	if failed != nil {
		failed.WriteResponse(w, c.NeedsStream())
		return
	}
	defer release()
	gauge := openSessions.WithLabelValues(t.Registration, c.Subresource)
	gauge.Inc()
	defer gauge.Dec()
	one := w.session
	stop := context.AfterFunc(t.Upstream.ContextOfLink(), func() { one.cancel(errLinkEnded) }) //nolint:contextcheck // the link ends its sessions
	defer stop()

	location := t.Upstream.Streams.URLForPath("api", "v1", "namespaces", c.Pod.Namespace, "pods", c.Pod.Name, c.Subresource)
	location.RawQuery = c.Query.Encode()
	request := r.Clone(r.Context())
	request.URL, request.Host, request.Body, request.ContentLength = location, location.Host, http.NoBody, 0
	request.Header, request.Trailer, request.TransferEncoding = c.ForwardedHeaders(r.Header), nil, nil
	request.RemoteAddr = "" // do not reveal the caller's address to the member

	fail := func(code int, content []byte) *Failure {
		return MemberResponseFailure(t.Registration, t.Upstream.Streams.CurrentToken(), code, content)
	}
	w.toFailure = fail
	handler := proxy.NewUpgradeAwareHandler(location, &logTransport{session: one, call: c, target: t, fail: fail}, false, c.NeedsStream(), &errorResponder{c, t})
	handler.UseLocationHost = true
	handler.FlushInterval = -1 // flushes immediately
	handler.UpgradeTransport = t.Upstream.Streams.UpgradeTransport(one.wrapDial)
	handler.ServeHTTP(w, request)
}

// logTransport is the transport of requests for logs. It returns only the body of the member's response, so
// none of its headers reach the client.
type logTransport struct {
	session *Session
	call    Call
	target  Target
	fail    func(int, []byte) *Failure
}

// RoundTrip implements http.RoundTripper.
func (l *logTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.target.Upstream.Streams.RequestTransport().RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		content, _ := io.ReadAll(io.LimitReader(response.Body, errorResponseLimit))
		_ = response.Body.Close()
		if response.StatusCode == http.StatusForbidden {
			if allowed, err := l.target.Upstream.Streams.HasPermission(request.Context(), l.call.RequiredVerb(), l.call.Subresource, l.call.Pod.Namespace); err == nil && !allowed {
				return nil, MissingPermission(l.call, l.target.Registration)
			}
		}
		return nil, l.fail(response.StatusCode, content)
	}
	l.session.markEstablished()
	response.Header, response.Trailer = http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}}, nil
	response.Body = &logBody{response.Body, l.session}
	return response, nil
}

// errorResponder writes the error response if the proxy fails.
type errorResponder struct {
	call   Call
	target Target
}

// Error implements proxy.ErrorResponder.
func (r *errorResponder) Error(w http.ResponseWriter, request *http.Request, err error) {
	if failed, ok := err.(*Failure); ok { //nolint:errorlint // RoundTrip returns it unwrapped
		failed.WriteResponse(w, r.call.NeedsStream())
		return
	}
	failed := UnavailableFailure("member %q cannot be reached: %s. Run kubectl describe clusterregistration %[1]s", r.target.Registration, mirror.PlainText(err.Error(), causeLimit))
	TimeoutFailureOr(request.Context(), failed).WriteResponse(w, r.call.NeedsStream())
}
