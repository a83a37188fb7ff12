package member_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
	"github.com/xylem-io/xylem/internal/member/membertest"
)

// memberWith returns a member whose kube-system namespace has the given UID.
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
		"valid identity":                             {member: memberWith("3f0c6c2e-63b3-4f2a-9a86-0e7f4f5e1c11"), want: "3f0c6c2e-63b3-4f2a-9a86-0e7f4f5e1c11"},
		"the member rejects the credentials":         {member: status(http.StatusUnauthorized), reason: v1alpha1.ReasonUnauthorized},
		"the credentials lack a permission":          {member: status(http.StatusForbidden), reason: v1alpha1.ReasonForbidden},
		"the member responds with an internal error": {member: status(http.StatusInternalServerError), reason: v1alpha1.ReasonUnreachable},
		"no identity (I8)":                           {member: memberWith(""), reason: v1alpha1.ReasonUnreachable},
		"an identity that is not a valid name (I8)":  {member: memberWith("a/../b"), reason: v1alpha1.ReasonUnreachable},
		"an identity that is too long (I8)":          {member: memberWith(strings.Repeat("a", 64)), reason: v1alpha1.ReasonUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(tc.member)
			t.Cleanup(server.Close)
			got, err := membertest.ConnectToServer(t, server).ReadIdentity(t.Context())
			if tc.reason != "" {
				p := &access.ConnectionProblem{}
				if !errors.As(err, &p) || p.Reason != tc.reason {
					t.Errorf("error is %v, want reason %s", err, tc.reason)
				}
				return
			}
			if err != nil || got != (member.Identity{ClusterID: tc.want, Version: "v1.36.3"}) {
				t.Errorf("identity is %+v, error %v; want cluster ID %q", got, err, tc.want)
			}
		})
	}
}

// The manager does not follow redirects. Otherwise, a member could make it send requests, with
// credentials, to addresses that the member cannot reach (I8).
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
			c := membertest.ConnectToServer(t, hostile)
			if _, err := c.ReadIdentity(t.Context()); err == nil {
				t.Error("Identify accepted a redirect as a response")
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hostile.URL+"/api", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if response, err := c.Watches.Do(request); err == nil {
				_ = response.Body.Close()
			}
			if asked {
				t.Error("Identify followed the redirect")
			}
		})
	}
}

// hostileMember returns a valid member, except for its version.
func hostileMember(version string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(version))
			return
		}
		memberWith("3f0c6c2e-63b3-4f2a-9a86-0e7f4f5e1c11")(w, r)
	}
}

// The registration and the virtual node show the member's version, so it must be harmless (I8).
func TestHostileVersion(t *testing.T) {
	for name, tc := range map[string]struct{ said, want string }{
		"a version":                         {"v1.36.3", "v1.36.3"},
		"a distribution's version":          {"v1.33.4-eks-99d6cc0", "v1.33.4-eks-99d6cc0"},
		"a version with build metadata":     {"v1.31.2+k3s1", "v1.31.2+k3s1"},
		"an empty version":                  {"", member.UnknownVersion},
		"a version with an escape sequence": {"v1.36.3\\u001b[2J", member.UnknownVersion},
		"not a version":                     {"<script>", member.UnknownVersion},
		"an extremely long version":         {"v1.36." + strings.Repeat("9", 1<<16), member.UnknownVersion},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(hostileMember(`{"gitVersion":"` + tc.said + `"}`))
			t.Cleanup(server.Close)
			got, err := membertest.ConnectToServer(t, server).ReadIdentity(t.Context())
			if err != nil || got.Version != tc.want {
				t.Errorf("version is %.100q, error %v; want %q", got.Version, err, tc.want)
			}
		})
	}
}

// An endless response takes no more memory than a large one (I8).
func TestResponsesAreLimited(t *testing.T) {
	for name, header := range map[string]bool{"the body": false, "the header": true} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				chunk := strings.Repeat(" ", 1<<20)
				if header {
					w.Header().Set("X-Long", chunk)
				}
				w.Header().Set("Content-Type", "application/json")
				for r.Context().Err() == nil {
					if _, err := w.Write([]byte(chunk)); err != nil || header {
						return
					}
				}
			}))
			t.Cleanup(server.Close)
			_, err := membertest.ConnectToServer(t, server).ReadIdentity(t.Context())
			want := v1alpha1.ReasonAnswersRefused
			if header {
				want = v1alpha1.ReasonUnreachable
			}
			p := &access.ConnectionProblem{}
			if !errors.As(err, &p) || p.Reason != want || len(p.Message) > access.MaxMessageBytes {
				t.Errorf("error is %v, want a Problem with reason %s and a message within the limit", err, want)
			}
		})
	}
}

// Xylem shows a member's errors shortened, sanitized, and without the token (I8).
func TestErrorsHideTheToken(t *testing.T) {
	for name, code := range map[string]int{"refused": http.StatusUnauthorized, "forbidden": http.StatusForbidden, "ill": http.StatusInternalServerError, "moved": http.StatusFound} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
				status := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you sent ` + token + `\u001b[2J ` + strings.Repeat("x", 1<<17) + `","code":` + strconv.Itoa(code) + `}`
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				_, _ = w.Write([]byte(status)) //nolint:gosec // as a careless server does
			}))
			t.Cleanup(server.Close)
			_, err := membertest.ConnectToServer(t, server).ReadIdentity(t.Context())
			p := &access.ConnectionProblem{}
			if !errors.As(err, &p) {
				t.Fatalf("error is %v, want a Problem", err)
			}
			if strings.Contains(p.Message, "secret") || strings.ContainsRune(p.Message, '\x1b') || len(p.Message) > access.MaxMessageBytes {
				t.Errorf("message is %.300q, of %d bytes; want it shortened, sanitized, and without the token", p.Message, len(p.Message))
			}
		})
	}
}

// The dialer checks the address after DNS resolution, because any host name can resolve to a
// refused address (I8).
func TestAddressesAreCheckedWhenDialled(t *testing.T) {
	asked := false
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(inside.Close)
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for name, tc := range map[string]struct{ host, says string }{
		"a name that resolves to this machine":           {"localhost", "loopback"},
		"this machine":                                   {"127.0.0.1", "loopback"},
		"this machine's IPv6 address":                    {"[::1]", "loopback"},
		"this machine's IPv4 address as an IPv6 address": {"[::ffff:7f00:1]", "loopback"},
		"a cloud metadata service":                       {"169.254.169.254", "link-local"},
		"a cloud metadata service, IPv6":                 {"[fd00:ec2::254]", "metadata"},
		"a link-local address":                           {"[fe80::1]", "link-local"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &rest.Config{Host: "https://" + tc.host + port, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
			c, err := member.NewConnection(config, "test", clientgoscheme.Scheme, member.CallTimeout, false, budget.DefaultMemoryLimits, clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			_, err = c.ReadIdentity(t.Context())
			p := &access.ConnectionProblem{}
			if !errors.As(err, &p) || p.Reason != v1alpha1.ReasonKubeconfigRefused || !strings.Contains(p.Message, tc.says) {
				t.Errorf("error is %v, want a Problem with reason KubeconfigRefused that contains %q", err, tc.says)
			}
			if asked {
				t.Error("the server received a request")
			}
		})
	}
}

// May uses the connection's client, which needs no discovery.
func TestMay(t *testing.T) {
	asked := make(chan *http.Request, 2)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`))
	}))
	defer server.Close()
	c := membertest.ConnectToServer(t, server)
	if allowed, err := c.Streams.HasPermission(t.Context(), "create", "exec", "shop"); err != nil || !allowed {
		t.Errorf("May returned %v, %v; want true", allowed, err)
	}
	if r := <-asked; r.URL.Path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		t.Errorf("the request's path is %s, want that of a SelfSubjectAccessReview", r.URL.Path)
	}
	if !c.MayLoosenPodSecurity(t.Context()) {
		t.Error("MayLoosen does not report the granted permission to loosen Pod Security")
	}
}
