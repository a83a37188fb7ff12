package member

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
)

// A stream has its own connection, and uses HTTP/1.1 and the current token.
func TestOpener(t *testing.T) {
	tokens := make(chan string, 2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, r.Proto) //nolint:gosec // a test that reads it back
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	config := &rest.Config{Host: server.URL + "/k8s/clusters/c-1", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	direct := access.DialSettings{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }, Dial: new(net.Dialer).DialContext}
	bearer := budget.NewTokenHolder("first", clock.RealClock{})
	s, err := NewStreamOpener(config, tlsConfig, direct, bearer, nil)
	if err != nil {
		t.Fatal(err)
	}
	location := s.URLForPath("api", "v1", "pods")
	if !strings.HasSuffix(location.String(), "/k8s/clusters/c-1/api/v1/pods") {
		t.Errorf("location is %s, want the kubeconfig's path, followed by /api/v1/pods", location)
	}
	for _, token := range []string{"first", "second"} {
		bearer.ReplaceToken(token)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, location.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := s.RequestTransport().RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(content) != "HTTP/1.1" {
			t.Errorf("content is %q, error %v; want HTTP/1.1", content, err)
		}
		if got := <-tokens; got != "Bearer "+token || request.Header.Get("Authorization") != "" {
			t.Errorf("the request was sent with %q, want token %q, and must not change", got, token)
		}
		signed, err := s.UpgradeTransport(func(d DialFunc) DialFunc { return d }).WrapRequest(request)
		if err != nil || signed.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("an upgrade request has headers %q, error %v; want token %q", signed.Header, err, token)
		}
	}
}
