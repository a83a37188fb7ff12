package member

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
)

// A stream has its own connection, and uses HTTP/1.1 and the current token.
func TestStreams(t *testing.T) {
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
	direct := access.Way{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }, Dial: new(net.Dialer).DialContext}
	bearer := budget.NewBearer("first", clock.RealClock{})
	s, err := newStreams(config, tlsConfig, direct, bearer, nil)
	if err != nil {
		t.Fatal(err)
	}
	location := s.Location("api", "v1", "pods")
	if !strings.HasSuffix(location.String(), "/k8s/clusters/c-1/api/v1/pods") {
		t.Errorf("location is %s, want the kubeconfig's path, followed by /api/v1/pods", location)
	}
	for _, token := range []string{"first", "second"} {
		bearer.Replace(token)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, location.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := s.Transport().RoundTrip(request)
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
		signed, err := s.Upgrades(func(d Dial) Dial { return d }).WrapRequest(request)
		if err != nil || signed.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("an upgrade request has headers %q, error %v; want token %q", signed.Header, err, token)
		}
	}
}

// May uses the connection's client, which needs no discovery.
func TestMay(t *testing.T) {
	asked := make(chan *http.Request, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
	}))
	defer server.Close()
	scheme := runtime.NewScheme()
	if err := authorizationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := Connect(&rest.Config{Host: server.URL}, "xylem", scheme, time.Minute, true, budget.DefaultLimits, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if allowed, err := c.Streams.May(t.Context(), "create", "exec", "shop"); err != nil || !allowed {
		t.Errorf("May returned %v, %v; want true", allowed, err)
	}
	if r := <-asked; r.URL.Path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		t.Errorf("the request's path is %s, want that of a SelfSubjectAccessReview", r.URL.Path)
	}
	if !c.MayLoosen(t.Context()) {
		t.Error("MayLoosen does not report the granted permission to loosen Pod Security")
	}
}
