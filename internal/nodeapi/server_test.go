package nodeapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/mirror"
)

const memberToken = "member-secret-token"

// List implements client.Reader for the Pods on one node.
func (o objects) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	list, ok := into.(*corev1.PodList)
	if !ok || o.err != nil {
		return errors.Join(o.err, errors.ErrUnsupported)
	}
	for _, pod := range o.pods {
		if pod.Spec.NodeName == "kosmos-one" {
			list.Items = append(list.Items, *pod.DeepCopy())
		}
	}
	return nil
}

// objects is a reader that returns Pods, Nodes and Namespaces from maps.
type objects struct {
	client.Reader
	pods       map[string]*corev1.Pod
	nodes      map[string]*corev1.Node
	namespaces map[string]*corev1.Namespace
	err        error
}

func (o objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if o.err != nil {
		return o.err
	}
	switch into := into.(type) {
	case *corev1.Pod:
		if pod := o.pods[key.String()]; pod != nil {
			pod.DeepCopyInto(into)
			return nil
		}
	case *corev1.Node:
		if node := o.nodes[key.Name]; node != nil {
			node.DeepCopyInto(into)
			return nil
		}
	case *corev1.Namespace:
		if namespace := o.namespaces[key.Name]; namespace != nil {
			namespace.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// api is the part of a member's API server that streams use.
type api struct {
	server  *httptest.Server
	allowed bool
	may     error
}

func (a *api) URLForPath(path ...string) *url.URL {
	u, _ := url.Parse(a.server.URL)
	return u.JoinPath(path...)
}

func (a *api) RequestTransport() http.RoundTripper { return a.server.Client().Transport }

func (a *api) UpgradeTransport(around func(member.DialFunc) member.DialFunc) proxy.UpgradeRequestRoundTripper {
	transport := a.server.Client().Transport.(*http.Transport).Clone()
	transport.DialContext = around(new(net.Dialer).DialContext)
	return proxy.NewUpgradeRequestRoundTripper(transport, proxy.MirrorRequest)
}

func (a *api) HasPermission(context.Context, string, string, string) (bool, error) {
	return a.allowed, a.may
}

func (a *api) CurrentToken() string { return memberToken }

// world is a Server with one linked member.
type world struct {
	*Server
	address string
	audit   *strings.Builder
	mu      *sync.Mutex
	member  *api
	unlink  func()
	client  *http.Client
}

// lines returns the audit log.
func (w *world) lines() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.audit.String()
}

func begin(t *testing.T, memberAPI http.HandlerFunc, change ...func(*Options, *api, *objects)) *world {
	t.Helper()
	w := &world{audit: &strings.Builder{}, mu: &sync.Mutex{}}
	root, leaf, namespace := pods()
	elsewhere := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "plain"}, Spec: corev1.PodSpec{NodeName: "host-node"}}
	virtual := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-one", Labels: map[string]string{
		v1alpha1.LabelVirtualNode: "true", v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelCluster: "one",
	}}}
	host := &objects{
		pods:  map[string]*corev1.Pod{"shop/web-0": root, "shop/plain": elsewhere},
		nodes: map[string]*corev1.Node{"kosmos-one": virtual, "host-node": {}},
	}
	w.member = &api{server: memberServer(t, memberAPI), allowed: true}
	own := &SelfSignedCertificate{Name: "manager-0", Clock: clock.RealClock{}}
	o := Options{
		HostID: hostID, Host: host, HostLive: host, IsLeader: func() bool { return true },
		LeaderName:    func(context.Context) (string, error) { return "manager-1", nil },
		MemberState:   func(string) (fleet.State, bool) { return fleet.State{}, false },
		Authenticator: authenticator.RequestFunc(authenticate),
		Authorizer:    authorizer.AuthorizerFunc(authorize),
		Certificate:   own.GetCertificate, Limits: SessionLimits{Sessions: 8, MemberSessions: 4}, IdleTimeout: time.Minute, Clock: clock.RealClock{},
		Log: funcr.New(func(prefix, args string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			fmt.Fprintln(w.audit, prefix, args)
		}, funcr.Options{}),
	}
	for _, f := range change {
		f(&o, w.member, host)
	}
	w.Server = New(o)
	tcp, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.address = tcp.Addr().String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.serveListener(ctx, tcp) }()
	linkCtx, unlink := context.WithCancel(ctx)
	unlinked := make(chan struct{})
	up := &Upstream{
		Member: mirror.Member{Registration: "one", NodeName: "kosmos-one", HostID: hostID}, Streams: w.member,
		Live:  objects{pods: map[string]*corev1.Pod{"shop/web-0": leaf}, namespaces: map[string]*corev1.Namespace{"shop": namespace}},
		Cache: objects{pods: map[string]*corev1.Pod{"shop/web-0": leaf}},
	}
	go func() {
		defer close(unlinked)
		w.serveMember(linkCtx, up)
	}()
	w.unlink = func() {
		unlink()
		<-unlinked
	}
	if err := wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(context.Context) (bool, error) { return w.finder.Links.EnterLink("kosmos-one") != nil, nil }); err != nil {
		t.Fatal(err)
	}
	up.EndRequest()
	w.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // self-signed
	t.Cleanup(func() {
		w.unlink()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

// memberServer starts a member's API server. Its ECDSA key makes handshakes much cheaper than the RSA
// key of package httptest.
func memberServer(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	own := &SelfSignedCertificate{Name: "member", Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}, Clock: clock.RealClock{}}
	certificate, err := own.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// authenticate authenticates "Bearer NAME" as the user NAME.
func authenticate(r *http.Request) (*authenticator.Response, bool, error) {
	name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if name == "broken" {
		return nil, false, errors.New("no response")
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, ok, nil
}

// authorize allows "reader" to get and "admin" to do everything on the virtual node, and "root" on
// every node. "scraper" can read metrics.
func authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	who := a.GetUser().GetName()
	if a.GetResource() == "nodes" && a.GetSubresource() == "proxy" && (a.GetName() == "kosmos-one" && (who == "admin" || who == "reader" && a.GetVerb() == "get") || who == "root") {
		return authorizer.DecisionAllow, "", nil
	}
	if a.GetResource() == "nodes" && a.GetSubresource() == "metrics" && who == "scraper" && a.GetVerb() == "get" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// get sends a GET request and returns the status and the body.
func (w *world) get(t *testing.T, who, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+w.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+who)
	}
	response, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// stream requests an upgrade and returns the connection after the response header.
func (w *world) stream(t *testing.T, who, path string) (net.Conn, *bufio.Reader, upgradeResponse) {
	t.Helper()
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", w.address) //nolint:gosec // self-signed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Forwarded-For: 10.9.9.9\r\n\r\n", path, who)
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	content, err := answerOf(response)
	if err != nil {
		t.Fatal(err)
	}
	return conn, reader, upgradeResponse{response.StatusCode, content}
}

// upgradeResponse is the response to an upgrade request.
type upgradeResponse struct {
	code    int
	content string
}

// answerOf returns the body of a response without an upgrade.
func answerOf(response *http.Response) (string, error) {
	if response.StatusCode == http.StatusSwitchingProtocols {
		return "", nil
	}
	content, err := io.ReadAll(response.Body)
	return string(content), errors.Join(err, response.Body.Close())
}

func TestLogs(t *testing.T) {
	var seen atomic.Pointer[http.Request]
	w := begin(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r)
		w.Header().Set("Set-Cookie", "a=b")
		_, _ = io.WriteString(w, "line\n")
	})
	code, content := w.get(t, "reader", "/containerLogs/shop/web-0/app?tailLines=1&evil=1")
	if code != http.StatusOK || content != "line\n" {
		t.Fatalf("%d %q", code, content)
	}
	r := seen.Load()
	if got, want := r.URL.String(), "/api/v1/namespaces/shop/pods/web-0/log?container=app&tailLines=1"; got != want {
		t.Errorf("the member received the request %q, want %q", got, want)
	}
	for _, name := range []string{"Authorization", "X-Forwarded-For", "Cookie"} {
		if r.Header.Get(name) != "" {
			t.Errorf("the member received the header %s: %q", name, r.Header.Get(name))
		}
	}
	if lines := w.lines(); !strings.Contains(lines, `"user"="reader"`) || !strings.Contains(lines, `"code"=200`) || strings.Contains(lines, "tailLines") {
		t.Errorf("audit: %s", lines)
	}
}

// The manager forwards every line immediately, and ends the stream when the link ends.
func TestLogsFollow(t *testing.T) {
	w := begin(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+w.address+"/containerLogs/shop/web-0/app?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer reader")
	response, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	reader := bufio.NewReader(response.Body)
	if line, err := reader.ReadString('\n'); line != "first\n" {
		t.Fatalf("%q, %v", line, err)
	}
	w.unlink() // returns after the session has ended
	if _, err := reader.ReadString('\n'); err == nil {
		t.Error("the stream continues after the link ended")
	}
	if lines := w.lines(); !strings.Contains(lines, "the link to the member ended") {
		t.Errorf("audit: %s", lines)
	}
}

// echo upgrades the connection and echoes its input.
func echo(w http.ResponseWriter, _ *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	_, _ = io.Copy(conn, buffered)
}

func TestStream(t *testing.T) {
	var seen atomic.Pointer[http.Request]
	w := begin(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r)
		echo(w, r)
	})
	const path = "/exec/shop/web-0/app?command=cat&command=secret&input=1&output=1"
	conn, reader, response := w.stream(t, "admin", path)
	if response.code != http.StatusSwitchingProtocols {
		t.Fatal(response.code, response.content)
	}
	for range 3 {
		fmt.Fprint(conn, "hello\n")
		if line, err := reader.ReadString('\n'); line != "hello\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	r := seen.Load()
	if got, want := r.Method+" "+r.URL.String(), "POST /api/v1/namespaces/shop/pods/web-0/exec?command=cat&command=secret&container=app&stderr=false&stdin=true&stdout=true&tty=false"; got != want {
		t.Errorf("the member received the request %q, want %q", got, want)
	}
	if r.Header.Get("Authorization") != "" {
		t.Errorf("the member received the caller's credentials")
	}

	// The limit is four sessions per member, and thus two for the only namespace. The second session
	// ends with the link, and neither leaks resources.
	_, second, _ := w.stream(t, "admin", path)
	if _, _, third := w.stream(t, "admin", path); third.code != http.StatusTooManyRequests {
		t.Errorf("a third session is accepted: %s", third.content)
	}
	_ = conn.Close()
	w.unlink()
	if _, err := second.ReadByte(); err == nil {
		t.Error("the stream continues after the link ended")
	}
	if open := w.sessions.CountOpenSessions(); open != 0 {
		t.Errorf("%d sessions are still open", open)
	}
	if lines := w.lines(); strings.Contains(lines, "secret") || strings.Contains(lines, "hello") {
		t.Errorf("the audit log contains arguments or data: %s", lines)
	}
}

// A client that reads slowly receives everything, although it sends a ping after the command in the
// member has ended. The kernel discards unread data when a write meets a closed connection.
func TestSlowClientReceivesTheEnd(t *testing.T) {
	const size = 512 << 10
	ended := make(chan struct{})
	w := begin(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		_, _ = conn.Write(make([]byte, size))
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		close(ended)
		_, _ = io.Copy(io.Discard, conn)
	})
	conn, reader, response := w.stream(t, "admin", "/exec/shop/web-0/app")
	if response.code != http.StatusSwitchingProtocols {
		t.Fatal(response.code, response.content)
	}
	<-ended
	for range 20 { // until Xylem has noticed the end, and a reset would have arrived
		if _, err := conn.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
	if got, err := io.Copy(io.Discard, reader); got != size || err != nil {
		t.Errorf("received %d of %d bytes: %v", got, size, err)
	}
	_ = conn.Close()
	w.unlink() // returns after the session has ended
	if open := w.sessions.CountOpenSessions(); open != 0 {
		t.Errorf("%d sessions are still open", open)
	}
}

func TestIdle(t *testing.T) {
	w := begin(t, echo, func(o *Options, _ *api, _ *objects) { o.IdleTimeout = 50 * time.Millisecond })
	_, reader, response := w.stream(t, "admin", "/exec/shop/web-0/app")
	if response.code != http.StatusSwitchingProtocols {
		t.Fatal(response.code, response.content)
	}
	if _, err := reader.ReadByte(); err == nil { // only the idle timeout ends it
		t.Error("an idle stream received data")
	}
	w.unlink()
	if lines := w.lines(); !strings.Contains(lines, `"outcome"="idle"`) {
		t.Errorf("audit: %s", lines)
	}
}

// A caller without permission gets no data and cannot determine whether the Pod exists.
func TestRefused(t *testing.T) {
	w := begin(t, func(http.ResponseWriter, *http.Request) { t.Error("the member received a request") })
	for name, tc := range map[string]struct {
		who, path string
		code      int
	}{
		"anonymous":                                 {"", "/containerLogs/shop/web-0/app", http.StatusUnauthorized},
		"anonymous, unknown path":                   {"", "/nothing", http.StatusUnauthorized},
		"the anonymous user":                        {"system:anonymous", "/containerLogs/shop/web-0/app", http.StatusUnauthorized},
		"a failing authenticator":                   {"broken", "/containerLogs/shop/web-0/app", http.StatusUnauthorized},
		"without permission":                        {"somebody", "/containerLogs/shop/web-0/app", http.StatusForbidden},
		"without permission, a missing Pod":         {"somebody", "/containerLogs/shop/none/app", http.StatusForbidden},
		"without permission, a Pod on another node": {"somebody", "/containerLogs/shop/plain/app", http.StatusForbidden},
		"with permission, but for another node":     {"admin", "/containerLogs/shop/plain/app", http.StatusForbidden},
		"a missing Pod":                             {"root", "/containerLogs/shop/none/app", http.StatusBadRequest},
		"a Pod on a host node":                      {"root", "/containerLogs/shop/plain/app", http.StatusBadRequest},
		"health without permission":                 {"admin", "/healthz", http.StatusForbidden},
		"health with permission":                    {"root", "/healthz", http.StatusOK},
		"another kubelet path":                      {"root", "/runningpods/", http.StatusNotFound},
		"other kubelet metrics":                     {"root", "/metrics/cadvisor", http.StatusNotFound},
		"metrics of a host node":                    {"scraper", "/metrics/resource/host-node", http.StatusNotFound},
		"metrics without a node":                    {"scraper", "/metrics/resource", http.StatusNotFound},
		"metrics with a longer path":                {"scraper", "/metrics/resource/kosmos-one/more", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			code, content := w.get(t, tc.who, tc.path)
			if code != tc.code {
				t.Errorf("%d %q, want %d", code, content, tc.code)
			}
			if code == http.StatusForbidden && content != ErrUnauthorized.MessageLine() {
				t.Errorf("the response reveals too much: %q", content)
			}
			if strings.ContainsAny(content, "\n\r") {
				t.Errorf("the response has several lines: %q", content)
			}
		})
	}
	for _, who := range []string{"admin", "root", "somebody"} { // nodes/proxy does not include nodes/metrics
		for _, path := range []string{"/metrics/resource/kosmos-one", "/metrics/resource/none", "/metrics/resource"} {
			if code, content := w.get(t, who, path); code != http.StatusForbidden || content != errMetricsForbidden.MessageLine() {
				t.Errorf("%s, as %s: %d %q", path, who, code, content)
			}
		}
	}
	if _, _, response := w.stream(t, "reader", "/exec/shop/web-0/app"); response.code != http.StatusForbidden {
		t.Errorf("a user with get can exec: %s", response.content)
	}
}

// The API server's node proxy sends requests of users who have only "get" on nodes/proxy, with the API
// server's identity. They cannot open a stream.
func TestNodeProxyCannotOpenStreams(t *testing.T) {
	w := begin(t, echo)
	hostAPI := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer root") // represents the API server's client certificate
		// as in k8s.io/kubernetes/pkg/registry/core/node/rest/proxy.go
		location := &url.URL{Scheme: "https", Host: w.address, Path: strings.TrimPrefix(r.URL.Path, "/api/v1/nodes/kosmos-one/proxy")}
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // self-signed
		proxy.NewUpgradeAwareHandler(location, transport, true, false, nil).ServeHTTP(rw, r)
	}))
	defer hostAPI.Close()
	for method, code := range map[string]int{http.MethodGet: http.StatusMethodNotAllowed, http.MethodPost: http.StatusSwitchingProtocols} {
		for _, path := range []string{"exec/shop/web-0/app?command=id&output=1", "attach/shop/web-0/app?output=1", "portForward/shop/web-0?port=80"} {
			for _, protocol := range []string{"SPDY/3.1", "websocket"} {
				t.Run(method+" "+path+" "+protocol, func(t *testing.T) {
					r, err := http.NewRequestWithContext(t.Context(), method, hostAPI.URL+"/api/v1/nodes/kosmos-one/proxy/"+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Connection", "Upgrade")
					r.Header.Set("Upgrade", protocol)
					response, err := http.DefaultTransport.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = response.Body.Close() }()
					if response.StatusCode != code {
						t.Errorf("%s, want %d", response.Status, code)
					}
				})
			}
		}
	}
}

// The client gets a member's error response as one line, without the token.
func TestMembersAnswers(t *testing.T) {
	status := func(code int, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: message, Code: int32(code)})
		}
	}
	endless := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\n")
		for i := 0; err == nil; i++ {
			_, err = fmt.Fprintf(conn, "X-%d: %s\r\n", i, strings.Repeat("x", 4096))
		}
	}
	for name, tc := range map[string]struct {
		member        http.HandlerFunc
		denied        bool
		logs, streams int
		says          string
	}{
		"a container is waiting":          {status(http.StatusBadRequest, "container \"app\" in pod \"web-0\" is waiting to start"), false, http.StatusBadRequest, http.StatusBadRequest, "waiting to start"},
		"denied by a policy":              {status(http.StatusForbidden, "denied by policy"), false, http.StatusForbidden, http.StatusForbidden, "denied by policy"},
		"permission is missing":           {status(http.StatusForbidden, "forbidden"), true, http.StatusForbidden, http.StatusForbidden, "--member-kubeconfig FILE --with-"},
		"the response contains the token": {status(http.StatusBadGateway, "sent "+memberToken), false, http.StatusInternalServerError, http.StatusBadGateway, "sent ********"},
		"the response has several lines":  {status(http.StatusInternalServerError, "a\nb\x1b[2J"), false, http.StatusInternalServerError, http.StatusInternalServerError, "a b"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		}, false, http.StatusInternalServerError, http.StatusServiceUnavailable, "member \"one\""},
		"an endless header": {endless, false, http.StatusInternalServerError, http.StatusServiceUnavailable, "member \"one\""},
		"no response": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		}, false, http.StatusInternalServerError, http.StatusServiceUnavailable, "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, tc.member, func(_ *Options, a *api, _ *objects) { a.allowed = !tc.denied })
			code, content := w.get(t, "admin", "/containerLogs/shop/web-0/app")
			if code != tc.logs || !strings.Contains(content, tc.says) || strings.ContainsAny(content, "\n\x1b") || strings.Contains(content, memberToken) {
				t.Errorf("logs: %d %q, want %d %q", code, content, tc.logs, tc.says)
			}
			_, _, response := w.stream(t, "admin", "/exec/shop/web-0/app")
			says := strings.ReplaceAll(tc.says, `"`, `\"`)
			if response.code != tc.streams || !strings.Contains(response.content, says) || strings.Contains(response.content, memberToken) {
				t.Errorf("exec: %d %q, want %d %q", response.code, response.content, tc.streams, says)
			}
		})
	}
}

// The endpoint serves a member's usage metrics only for pushed Pods, in a kubelet's format.
func TestResources(t *testing.T) {
	start := time.Now().Truncate(time.Second)
	var at atomic.Int64
	serves := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"items":[{"metadata":{"namespace":"shop","name":"web-0"},"timestamp":%q,"containers":[{"name":"app","usage":{"cpu":"500m","memory":"1Mi"}},{"name":"injected","usage":{"cpu":"9","memory":"9"}}]},`+
			`{"metadata":{"namespace":"kube-system","name":"dns"},"timestamp":%[1]q,"containers":[{"name":"app","usage":{"cpu":"9","memory":"9"}}]}]}`,
			start.Add(time.Duration(at.Load())*time.Second).Format(time.RFC3339))
	}
	hangs := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"items":[`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	named := func(_ *Options, _ *api, host *objects) {
		host.pods["shop/web-0"].Spec.Containers = []corev1.Container{{Name: "app"}}
	}
	t.Run("served", func(t *testing.T) {
		w := begin(t, serves, named)
		if code, content := w.get(t, "scraper", "/metrics/resource/kosmos-one"); code != http.StatusOK || strings.Contains(content, "injected") || strings.Contains(content, "dns") {
			t.Errorf("%d %s", code, content)
		}
		at.Store(10)
		code, content := w.get(t, "scraper", "/metrics/resource/kosmos-one")
		want := fmt.Sprintf(`container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web-0"} 5.000001 %d`, start.Add(10*time.Second).UnixMilli())
		if code != http.StatusOK || !strings.Contains(content, want) {
			t.Errorf("%d %s, want %s", code, content, want)
		}
	})
	t.Run("the leaf was replaced (I8)", func(t *testing.T) {
		w := begin(t, serves, named, func(_ *Options, _ *api, host *objects) {
			host.pods["shop/web-0"].Annotations[v1alpha1.AnnotationLeafUID] = "leaf-0"
		})
		if code, content := w.get(t, "scraper", "/metrics/resource/kosmos-one"); code != http.StatusOK || content != "" {
			t.Errorf("%d %s", code, content)
		}
	})
	t.Run("the link ends during the member's response", func(t *testing.T) {
		asked := make(chan struct{})
		w := begin(t, func(w http.ResponseWriter, r *http.Request) {
			close(asked)
			hangs(w, r)
		}, named)
		go func() {
			<-asked
			w.unlink()
		}()
		code, content := w.get(t, "scraper", "/metrics/resource/kosmos-one")
		if code < http.StatusInternalServerError || strings.Contains(content, "\n") {
			t.Errorf("%d %s", code, content)
		}
		if open := w.sessions.CountOpenSessions(); open != 0 {
			t.Errorf("%d sessions are still open", open)
		}
	})
}

// Sessions do not prevent metrics, and requests for metrics have a limit of their own.
func TestMetricsDoNotNeedSessions(t *testing.T) {
	answer, reading := make(chan struct{}), make(chan struct{}, 1)
	w := begin(t, func(w http.ResponseWriter, _ *http.Request) {
		reading <- struct{}{}
		<-answer
		_, _ = io.WriteString(w, `{"items":[]}`)
	}, func(o *Options, _ *api, _ *objects) { o.Limits = SessionLimits{Sessions: 1, MemberSessions: 1} })
	release, failed := w.sessions.OpenSession("one", "shop")
	if failed != nil {
		t.Fatal(failed)
	}
	defer release()
	const running = UsageReadLimit
	done := make(chan int, running)
	for range running {
		go func() {
			code, _ := w.get(t, "scraper", "/metrics/resource/kosmos-one")
			done <- code
		}()
		select {
		case <-reading:
		case code := <-done:
			t.Fatalf("%d, although only the sessions are used up", code)
		}
	}
	if code, content := w.get(t, "scraper", "/metrics/resource/kosmos-one"); code != http.StatusTooManyRequests {
		t.Errorf("above the limit: %d %q", code, content)
	}
	close(answer)
	for range running {
		if code := <-done; code != http.StatusOK {
			t.Errorf("below the limit: %d", code)
		}
	}
}

func TestNoLink(t *testing.T) {
	for name, tc := range map[string]struct {
		leads bool
		state fleet.State
		known bool
		code  int
		says  string
	}{
		"another replica is the leader":           {false, fleet.State{}, false, http.StatusServiceUnavailable, "manager-1"},
		"the member is unreachable":               {true, fleet.State{Problem: &access.ConnectionProblem{Message: "it does not respond"}}, true, http.StatusInternalServerError, "it does not respond"},
		"the manager is connecting to the member": {true, fleet.State{}, true, http.StatusInternalServerError, "connecting to it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, echo, func(o *Options, _ *api, _ *objects) {
				o.IsLeader = func() bool { return tc.leads }
				o.MemberState = func(string) (fleet.State, bool) { return tc.state, tc.known }
			})
			w.unlink()
			code, content := w.get(t, "admin", "/containerLogs/shop/web-0/app")
			if code != tc.code || !strings.Contains(content, tc.says) {
				t.Errorf("%d %q, want %d %q", code, content, tc.code, tc.says)
			}
		})
	}
}

// The server rejects a long header before it sends a request to the host or the member.
func TestLongHeader(t *testing.T) {
	w := begin(t, func(http.ResponseWriter, *http.Request) { t.Error("the member received a request") })
	_, _, response := w.stream(t, "admin", "/exec/shop/web-0/app?command="+strings.Repeat("x", 2*headerLimit))
	if response.code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s", response.content)
	}
}

// A thousand streams (a hundred with -short) run in parallel and leak nothing. The client and the member
// run in this process too, so the results are an upper bound for the endpoint's usage.
func TestThousandStreams(t *testing.T) {
	streams := 1000
	if testing.Short() {
		streams = 100
	}
	w := begin(t, echo, func(o *Options, _ *api, _ *objects) {
		o.Limits = SessionLimits{Sessions: 2 * streams, MemberSessions: 2 * streams} // all are in one namespace
	})
	measure := func() (goroutines int, heap uint64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), (m.HeapInuse + m.StackInuse) >> 10
	}
	before, idle := measure()
	open := make([]net.Conn, 0, streams)
	for range streams {
		conn, reader, response := w.stream(t, "admin", "/exec/shop/web-0/app")
		if response.code != http.StatusSwitchingProtocols {
			t.Fatal(response.code, response.content)
		}
		fmt.Fprint(conn, "hello\n")
		if line, err := reader.ReadString('\n'); line != "hello\n" {
			t.Fatalf("%q, %v", line, err)
		}
		open = append(open, conn)
	}
	during, full := measure()
	if _, _, response := w.stream(t, "admin", "/exec/shop/web-0/app"); response.code != http.StatusTooManyRequests {
		t.Errorf("a session above the limit is accepted: %s", response.content)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	w.unlink()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return runtime.NumGoroutine() < before+20, nil
	})
	if err != nil {
		t.Errorf("%d goroutines before the streams, %d afterwards", before, runtime.NumGoroutine())
	}
	t.Logf("with %d streams: %.1f goroutines and %.0f KiB per stream, including client and member", streams, float64(during-before)/float64(streams), float64(full-idle)/float64(streams))
}
