package member

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func connectTo(t *testing.T, server *httptest.Server) *connection {
	t.Helper()
	c, err := connect(&rest.Config{Host: server.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}, "test", clientgoscheme.Scheme, callTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// member answers who it is with a UID.
func memberWith(uid string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`
		if r.URL.Path == "/api/v1/namespaces/kube-system" {
			body = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"` + uid + `"}}`
		}
		_, _ = w.Write([]byte(body))
	}
}

func TestIdentify(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
	}
	for name, tc := range map[string]struct {
		member http.HandlerFunc
		want   string
		reason string
	}{
		"it says who it is":                 {member: memberWith("3f0c6c2e-63b3-4f2a-9a86-0e7f4f5e1c11"), want: "3f0c6c2e-63b3-4f2a-9a86-0e7f4f5e1c11"},
		"it refuses the credentials":        {member: status(http.StatusUnauthorized), reason: v1alpha1.ReasonUnauthorized},
		"the credentials lack a permission": {member: status(http.StatusForbidden), reason: v1alpha1.ReasonForbidden},
		"it is ill":                         {member: status(http.StatusInternalServerError), reason: v1alpha1.ReasonUnreachable},
		"it has no identity (I8)":           {member: memberWith(""), reason: v1alpha1.ReasonUnreachable},
		"its identity is no name (I8)":      {member: memberWith("a/../b"), reason: v1alpha1.ReasonUnreachable},
		"its identity is too long (I8)":     {member: memberWith(strings.Repeat("a", 64)), reason: v1alpha1.ReasonUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(tc.member)
			t.Cleanup(server.Close)
			got, err := connectTo(t, server).identify(t.Context())
			if tc.reason != "" {
				p := &Problem{}
				if !errors.As(err, &p) || p.Reason != tc.reason {
					t.Errorf("error is %v, want reason %s", err, tc.reason)
				}
				return
			}
			if err != nil || got != (Identity{ClusterID: tc.want, Version: "v1.36.3"}) {
				t.Errorf("identity is %+v, error %v", got, err)
			}
		})
	}
}

// A member that redirects its callers would have the manager ask, from where it
// stands, what the member cannot reach itself, credentials included (I8).
func TestRedirectsAreNotFollowed(t *testing.T) {
	for name, code := range map[string]int{"found": http.StatusFound, "temporary": http.StatusTemporaryRedirect, "permanent": http.StatusPermanentRedirect} {
		t.Run(name, func(t *testing.T) {
			asked := false
			inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
			t.Cleanup(inside.Close)
			hostile := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, inside.URL+"/latest/meta-data", code)
			}))
			t.Cleanup(hostile.Close)
			c := connectTo(t, hostile)
			if _, err := c.identify(t.Context()); err == nil {
				t.Error("a redirect was taken for an answer")
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hostile.URL+"/api", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if response, err := c.watches.Do(request); err == nil {
				_ = response.Body.Close()
			}
			if asked {
				t.Error("the redirect was followed")
			}
		})
	}
}
