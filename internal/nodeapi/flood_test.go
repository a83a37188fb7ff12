package nodeapi

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	clocktesting "k8s.io/utils/clock/testing"
)

const logsOfApp = "/containerLogs/shop/web-0/app"

func oneLine(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "line\n") }

// Half-open connections from several addresses do not keep out an API server.
func TestHalfOpenConnections(t *testing.T) {
	w := begin(t, oneLine)
	for i := range unknownLimit + 128 {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(20+i%5))}}
		conn, err := dialer.DialContext(t.Context(), "tcp", w.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	for range 3 {
		if code, content := w.get(t, "admin", logsOfApp); code != http.StatusOK {
			t.Errorf("%d %q", code, content)
		}
	}
}

// Only an authorized request keeps its connection.
func TestRefusedRequestsCloseTheirConnection(t *testing.T) {
	w := begin(t, oneLine)
	for name, tc := range map[string]struct {
		who, path string
		code      int
		keeps     bool
	}{
		"an invalid token":        {"broken", logsOfApp, http.StatusUnauthorized, false},
		"no permission":           {"nobody", logsOfApp, http.StatusForbidden, false},
		"no permission, metrics":  {"nobody", "/metrics/resource/kosmos-one", http.StatusForbidden, false},
		"no permission, health":   {"nobody", "/healthz", http.StatusForbidden, false},
		"an unknown path":         {"nobody", "/nothing", http.StatusNotFound, false},
		"authorized":              {"admin", logsOfApp, http.StatusOK, true},
		"authorized, but no Pod":  {"root", "/containerLogs/shop/none/app", http.StatusBadRequest, true},
		"authorized, health":      {"root", "/healthz", http.StatusOK, true},
		"authorized, but no node": {"scraper", "/metrics/resource/none", http.StatusNotFound, true},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", w.address) //nolint:gosec // self-signed
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer %s\r\n\r\n", tc.path, tc.who)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			content, err := answerOf(response)
			if err != nil || response.StatusCode != tc.code || response.Close == tc.keeps {
				t.Errorf("%d %q, %v, closes the connection: %v; want %d, closes: %v", response.StatusCode, content, err, response.Close, tc.code, !tc.keeps)
			}
		})
	}
}

// Invalid tokens and tokens without permission cause few reviews, and do not concern clients with
// certificates. The address recovers.
func TestRefusedTokensAreLimited(t *testing.T) {
	for name, token := range map[string]string{"invalid": "invalid-%d", "no permission": "nobody"} {
		t.Run(name, func(t *testing.T) {
			var reviews atomic.Int64
			now := clocktesting.NewFakeClock(time.Now())
			w := begin(t, oneLine, func(o *Options, _ *api, _ *objects) {
				o.Clock = now
				o.Authenticator = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
					reviews.Add(1)
					if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer invalid") {
						return nil, false, nil
					}
					return authenticate(r)
				})
			})
			w.refusals.delay = 0
			code, content := 0, ""
			for i := range 3 * refusalBurst {
				who := token
				if strings.Contains(token, "%") {
					who = fmt.Sprintf(token, i)
				}
				code, content = w.get(t, who, logsOfApp)
			}
			if code != http.StatusTooManyRequests || content != errTooManyRefusals.MessageLine() || reviews.Load() > refusalBurst {
				t.Errorf("%d %q after %d reviews, want %d reviews", code, content, reviews.Load(), refusalBurst)
			}
			if code, content := w.get(t, "", logsOfApp); code != http.StatusUnauthorized {
				t.Errorf("without a token: %d %q", code, content)
			}
			now.Step(time.Minute)
			if code, content := w.get(t, "admin", logsOfApp); code != http.StatusOK {
				t.Errorf("after a minute: %d %q", code, content)
			}
		})
	}
}
