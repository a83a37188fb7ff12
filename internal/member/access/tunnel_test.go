package access

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// connectProxy starts a proxy that responds to CONNECT and forwards the data that follows.
func connectProxy(t *testing.T, answer string) (*url.URL, <-chan *http.Request) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	asked := make(chan *http.Request, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		reader := bufio.NewReader(conn)
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		asked <- request
		_, _ = io.WriteString(conn, answer)
		_, _ = io.Copy(conn, reader)
	}()
	return &url.URL{Scheme: "http", Host: listener.Addr().String(), User: url.UserPassword("user", "secret")}, asked
}

// Streams also use the proxy that the manager's environment configures.
func TestThrough(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		works  bool
	}{
		"the proxy connects":        {"HTTP/1.1 200 Connection established\r\n\r\n", true},
		"the proxy refuses":         {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", false},
		"the server is not a proxy": {"SSH-2.0\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			via, asked := connectProxy(t, tc.answer)
			w := DialSettings{Proxy: http.ProxyURL(via), Dial: new(net.Dialer).DialContext}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			conn, err := w.DialThroughProxy(ctx, "tcp", "member.example:6443")
			if request := <-asked; request.Method != http.MethodConnect || request.Host != "member.example:6443" || request.Header.Get("Proxy-Authorization") == "" {
				t.Errorf("the proxy received %s %s, %v; want CONNECT member.example:6443 with the proxy's credentials", request.Method, request.Host, request.Header)
			}
			if (err == nil) != tc.works {
				t.Fatalf("error is %v, want none: %t", err, tc.works)
			}
			if err != nil {
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("the error contains the proxy's password: %v", err)
				}
				return
			}
			defer func() { _ = conn.Close() }()
			if _, err := io.WriteString(conn, "hello\n"); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
				t.Errorf("received %q, error %v; want the line that was sent", line, err)
			}
		})
	}
}
