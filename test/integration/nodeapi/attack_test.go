package nodeapi_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/test/controlplane"
)

const logPath = "/containerLogs/shop/web/app"

// metric returns the sum of one of the manager's metrics over all labels.
func metric(ctx context.Context, name string) (float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, x.Manager.MetricsURL(), nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, m := range families[name].GetMetric() {
		sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return sum, nil
}

func sessions(ctx context.Context) (float64, error) { return metric(ctx, "xylem_node_api_sessions") }

// credentials returns TLS settings with a user's certificate, if any, and the user's token.
func credentials(user func() ([]byte, error)) (config *tls.Config, token string) {
	GinkgoHelper()
	from := &rest.Config{}
	if user != nil {
		kubeconfig, err := user()
		Expect(err).NotTo(HaveOccurred())
		from, err = clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		Expect(err).NotTo(HaveOccurred())
	}
	from.Insecure, from.CAData, from.CAFile = true, nil, ""
	from.NextProtos = []string{"http/1.1"}
	config, err := rest.TLSConfigFor(from)
	Expect(err).NotTo(HaveOccurred())
	return config, from.BearerToken
}

// withToken sends requests with a token.
type withToken struct {
	http.RoundTripper
	token string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	return w.RoundTripper.RoundTrip(r)
}

// caller returns a client for the endpoint with a user's certificate or token.
func caller(user func() ([]byte, error)) *http.Client {
	GinkgoHelper()
	config, token := credentials(user)
	return &http.Client{
		Transport:     withToken{&http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, token},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func ask(ctx context.Context, c *http.Client, path string) (int, string) {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := c.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	GinkgoWriter.Printf("GET %s: %d %s\n", path, response.StatusCode, head(string(content)))
	return response.StatusCode, string(content)
}

var _ = Describe("the endpoint", func() {
	host := func(user string, groups ...string) func() ([]byte, error) {
		return func() ([]byte, error) { return x.Fleet.Host.UserKubeconfig(controlplane.Direct, user, groups...) }
	}

	It("serves only clients that a kubelet would also serve", func(ctx SpecContext) {
		By("sending neither a certificate nor a token")
		code, _ := ask(ctx, caller(nil), logPath)
		Expect(code).To(Equal(http.StatusUnauthorized))
		By("using a certificate from another cluster's CA, with the name of an admin")
		code, _ = ask(ctx, caller(func() ([]byte, error) {
			return x.Fleet.Member(one).UserKubeconfig(controlplane.Direct, "admin", "system:masters")
		}), logPath)
		Expect(code).To(Equal(http.StatusUnauthorized))
		By("acting as a user without permission")
		nobody := caller(host("nobody"))
		code, content := ask(ctx, nobody, logPath)
		Expect(code).To(Equal(http.StatusForbidden))
		By("requesting a missing Pod as the same user: the response must be the same")
		code, none := ask(ctx, nobody, "/containerLogs/shop/none/app")
		Expect(code).To(Equal(http.StatusForbidden))
		Expect(none).To(Equal(content))
		By("using a token from a member")
		kubeconfig, err := x.MemberKubeconfig(ctx, one)
		Expect(err).NotTo(HaveOccurred())
		code, _ = ask(ctx, caller(func() ([]byte, error) { return kubeconfig, nil }), logPath)
		Expect(code).To(Equal(http.StatusUnauthorized))
		By("acting as a user who has permission only for the other node")
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "other-node"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes/proxy"}, ResourceNames: []string{nodeTwo}, Verbs: []string{"get"}},
		}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "operator"}},
		}
		Expect(x.Host.API.Create(ctx, role)).To(Succeed())
		Expect(x.Host.API.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Host.API.Delete(ctx, binding)).To(Succeed())
			Expect(x.Host.API.Delete(ctx, role)).To(Succeed())
		})
		operator := caller(host("operator"))
		Eventually(ctx, func() int {
			code, _ := ask(ctx, operator, "/containerLogs/shop/other/app")
			return code
		}).WithContext(ctx).Should(Equal(http.StatusOK))
		code, _ = ask(ctx, operator, logPath)
		Expect(code).To(Equal(http.StatusForbidden))
		By("acting as a user without the permission to exec")
		conn, reader := open(ctx, host("operator"), "POST", "/exec/shop/other/app?command=true&output=1", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n")
		defer func() { _ = conn.Close() }()
		response, err := http.ReadResponse(reader, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.StatusCode).To(Equal(http.StatusForbidden))
		By("acting as an admin")
		code, content = ask(ctx, caller(host("admin", "system:masters")), logPath)
		Expect(code).To(Equal(http.StatusOK))
		Expect(content).To(Equal("first line\nsecond line\nthird line\n"))
	}, SpecTimeout(2*settle))

	It("opens no stream for users who may only get nodes/proxy, but for WebSocket clients that are older than kubectl's", func(ctx SpecContext) {
		proxied := proxiedNode(ctx)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "node-reader"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes/proxy"}, ResourceNames: []string{proxied}, Verbs: []string{"get"}},
		}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "node-reader"}},
		}
		Expect(x.Host.API.Create(ctx, role)).To(Succeed())
		Expect(x.Host.API.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(x.Host.API.Delete(ctx, binding)).To(Succeed())
			Expect(x.Host.API.Delete(ctx, role)).To(Succeed())
		})
		// throughHost sends a request to the host's API server.
		throughHost := func(user func() ([]byte, error), method, path, header string) (int, string) {
			GinkgoHelper()
			kubeconfig, err := user()
			Expect(err).NotTo(HaveOccurred())
			from, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
			Expect(err).NotTo(HaveOccurred())
			config, _ := credentials(user)
			conn, reader := dial(ctx, strings.TrimPrefix(from.Host, "https://"), config, method, path, header)
			defer func() { _ = conn.Close() }()
			response, err := http.ReadResponse(reader, nil)
			Expect(err).NotTo(HaveOccurred())
			content := make([]byte, 300)
			n, _ := response.Body.Read(content)
			GinkgoWriter.Printf("%s %s: %s %s\n", method, path, response.Status, content[:n])
			return response.StatusCode, string(content[:n])
		}
		const (
			pod       = "/api/v1/namespaces/shop/pods/web"
			spdy      = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\n"
			webSocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n"
		)
		node := "/api/v1/nodes/" + proxied + "/proxy"
		By("reading logs through the node proxy, which Xylem cannot distinguish from kubectl logs")
		Eventually(ctx, func() int {
			code, _ := throughHost(host("node-reader"), "GET", node+logPath, "")
			return code
		}).WithContext(ctx).Should(Equal(http.StatusOK))
		By("opening streams through the node proxy")
		for _, path := range []string{"/portForward/shop/web?port=80", "/exec/shop/web/app?command=id&output=1", "/attach/shop/web/app?output=1"} {
			for _, header := range []string{spdy, webSocket} {
				code, content := throughHost(host("node-reader"), "GET", node+path, header)
				Expect(code).To(Equal(http.StatusMethodNotAllowed), content)
				code, content = throughHost(host("node-reader"), "POST", node+path, header)
				Expect(code).To(Equal(http.StatusForbidden), content)
			}
		}
		By("opening WebSockets of the Pod's subresources with GET and the protocol of Kubernetes 1.28's clients")
		for _, path := range []string{"/exec?container=app&command=true&stdout=true", "/attach?container=app&stdout=true"} {
			code, content := throughHost(host("admin", "system:masters"), "GET", pod+path, webSocket)
			Expect(code).To(Equal(http.StatusSwitchingProtocols), content)
		}
	}, SpecTimeout(settle))

	It("asks the host about few invalid tokens, and keeps serving the API server", func(ctx SpecContext) {
		attacker := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the attacker does not care
			DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, 1)}}).DialContext,
		}}
		code := 0
		for i := 0; i < 200 && code != http.StatusTooManyRequests; i++ {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+logPath, nil)
			Expect(err).NotTo(HaveOccurred())
			r.Header.Set("Authorization", fmt.Sprint("Bearer invalid-", i))
			response, err := attacker.Do(r)
			Expect(err).NotTo(HaveOccurred())
			code = response.StatusCode
			Expect(code).To(BeElementOf(http.StatusUnauthorized, http.StatusTooManyRequests))
			Expect(response.Close).To(BeTrue(), "the connection must be closed")
			Expect(response.Body.Close()).To(Succeed())
		}
		Expect(code).To(Equal(http.StatusTooManyRequests))
		Expect(kubectl(ctx, "", nil, "logs", "other", "-c", "app", "--tail=1").out).To(Equal("third line\n"))
	}, SpecTimeout(settle))

	It("reaches only the Pods of virtual nodes", func(ctx SpecContext) {
		admin := caller(host("admin", "system:masters"))
		for _, path := range []string{
			"/", "/pods", "/metrics", "/run/shop/web/app", "/logs/", "/debug/pprof/", "//containerLogs/shop/web/app", "/containerLogs/shop/web/app/../../x",
			"/containerLogs/kube-system/../shop/app", "/containerLogs/shop/web%2f..%2f..%2fsecrets/app", "/containerLogs/shop/..%2fweb/app",
			"/api/v1/namespaces/shop/pods/web/log", "/containerLogs/shop/web/app%0d%0aX:%20y", "/exec/shop/web/app?command=true",
		} {
			code, content := ask(ctx, admin, path)
			Expect(code).To(BeNumerically(">=", http.StatusBadRequest), path)
			Expect(code).To(BeNumerically("<", http.StatusInternalServerError), path)
			Expect(content).NotTo(ContainSubstring("\n"), path)
		}
	}, SpecTimeout(settle))

	It("keeps serving other clients and members while attackers hold half-open connections", func(ctx SpecContext) {
		before := latency(ctx)
		var held []net.Conn
		DeferCleanup(func() {
			for _, conn := range held {
				_ = conn.Close()
			}
		})
		By("opening 3,000 connections from eight addresses, and beginning a TLS handshake on a third of them")
		for i := range 3000 {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%8))}, Timeout: 5 * time.Second}
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				continue // the backlog is full
			}
			if i%3 == 0 {
				_, _ = conn.Write([]byte{22, 3, 1, 2, 0})
			}
			held = append(held, conn)
		}
		Expect(len(held)).To(BeNumerically(">", 1000))
		r := kubectl(ctx, "", nil, "logs", "other", "-c", "app", "--tail=1")
		Expect(r.out).To(Equal("third line\n"), r.err)
		refused, err := metric(ctx, "xylem_node_api_refused_connections_total")
		Expect(err).NotTo(HaveOccurred())
		Expect(refused).To(BeNumerically(">", 0))
		AddReportEntry("latency of a member's logs before and during the attack", fmt.Sprintf("%s, %s; %v connections refused", before, latency(ctx), refused))
		Expect(x.AwaitReady(ctx, one)).To(Succeed())
		Expect(x.AwaitReady(ctx, two)).To(Succeed())
	}, SpecTimeout(3*settle))

	It("frees the memory of all sessions, even if clients do not read their streams", func(ctx SpecContext) {
		// KWOK uses one inotify instance for each followed log, and a user has only 128, so some of
		// the requests end immediately.
		const asked, sessionsOpen = 60, 30
		admin := host("admin", "system:masters")
		goroutines, err := metric(ctx, "go_goroutines")
		Expect(err).NotTo(HaveOccurred())
		memory := resident()
		var held []net.Conn
		for range asked {
			conn, _ := open(ctx, admin, "GET", logPath+"?follow=true", "")
			held = append(held, conn)
		}
		Eventually(ctx, sessions).WithContext(ctx).WithTimeout(3 * settle).Should(BeNumerically(">=", sessionsOpen))
		during, err := metric(ctx, "go_goroutines")
		Expect(err).NotTo(HaveOccurred())
		duringMemory := resident()
		r := kubectl(ctx, "", nil, "logs", "other", "-c", "app", "--tail=1")
		Expect(r.out).To(Equal("third line\n"), r.err)
		for _, conn := range held {
			Expect(conn.Close()).To(Succeed())
		}
		Eventually(ctx, sessions).WithContext(ctx).WithTimeout(settle).Should(BeZero())
		Eventually(ctx, func() (float64, error) { return metric(ctx, "go_goroutines") }).WithContext(ctx).WithTimeout(settle).Should(BeNumerically("<", goroutines+100))
		after, err := metric(ctx, "go_goroutines")
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry(fmt.Sprintf("before, with and after %d sessions", asked), fmt.Sprintf("goroutines %v, %v, %v; resident MiB %d, %d, %d", goroutines, during, after, memory, duringMemory, resident()))
	}, SpecTimeout(8*time.Minute))
})

// proxiedNode creates a node whose address leads to the manager, and returns its name. API servers do not
// proxy to the loopback address of the virtual nodes in this suite.
func proxiedNode(ctx context.Context) string {
	GinkgoHelper()
	addresses, err := net.InterfaceAddrs()
	Expect(err).NotTo(HaveOccurred())
	var ip net.IP
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			ip = n.IP
		}
	}
	if ip == nil {
		Skip("this machine has only a loopback address")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip.String(), "0"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				_ = from.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					_, _ = way[0].Close(), way[1].Close()
				}()
			}
		}
	}()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "proxied"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	Expect(x.Host.API.Create(ctx, node)).To(Succeed())
	DeferCleanup(x.Host.API.Delete, node)
	before := node.DeepCopy()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip.String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(listener.Addr().(*net.TCPAddr).Port)
	Expect(x.Host.API.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
	return node.Name
}

// latency measures a small request to the second member.
func latency(ctx context.Context) time.Duration {
	started := time.Now()
	kubectl(ctx, "", nil, "logs", "other", "-c", "app", "--tail=1")
	return time.Since(started).Round(time.Millisecond)
}

// resident returns the manager's resident memory in MiB.
func resident() int {
	GinkgoHelper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", x.Manager.PID()))
	Expect(err).NotTo(HaveOccurred())
	pages, err := strconv.Atoi(strings.Fields(string(content))[1])
	Expect(err).NotTo(HaveOccurred())
	return pages * os.Getpagesize() >> 20
}

// open sends a request with the certificate of a user, and returns its connection.
func open(ctx context.Context, user func() ([]byte, error), method, path, header string) (net.Conn, *bufio.Reader) {
	GinkgoHelper()
	config, _ := credentials(user)
	return dial(ctx, address, config, method, path, header)
}

func dial(ctx context.Context, to string, config *tls.Config, method, path, header string) (net.Conn, *bufio.Reader) {
	GinkgoHelper()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", to)
	Expect(err).NotTo(HaveOccurred())
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: node\r\n%s\r\n", method, path, header)
	Expect(err).NotTo(HaveOccurred())
	return conn, bufio.NewReader(conn)
}
