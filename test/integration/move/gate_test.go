package move_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/xylem-io/xylem/test/controlplane"
)

// gate is a proxy between the plugin and the host's API server. It ends the plugin at one of the
// plugin's writes, as a kill would: the server has either processed the write or never received it.
type gate struct {
	kubeconfig string

	mu     sync.Mutex
	writes []string
	// ends decides whether a write ends the run, and whether the write is lost before it reaches the
	// server.
	ends   func(write string) (ends, lost bool)
	cancel context.CancelFunc
}

// at ends a run at its n-th write.
func at(n int, lost bool) func(string) (bool, bool) {
	seen := 0
	return func(string) (bool, bool) {
		seen++
		return seen == n, lost
	}
}

// atNewWrite makes each write end two runs. The first of them ends before the server receives the
// write. The second ends after the server has processed it, so the run loses the response.
func atNewWrite(seen map[string]int) func(string) (bool, bool) {
	return func(write string) (bool, bool) {
		seen[write]++
		return seen[write] <= 2, seen[write] == 1
	}
}

// never lets a run finish.
func never(string) (bool, bool) { return false, false }

func newGate() *gate {
	GinkgoHelper()
	config, err := x.Fleet.Host.RESTConfig(controlplane.Direct)
	Expect(err).NotTo(HaveOccurred())
	config.NextProtos = []string{"http/1.1"} // exec streams need HTTP/1.1
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	to, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	g := &gate{}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/exec") || r.URL.Query().Has("dryRun") {
			proxy.ServeHTTP(w, r)
			return
		}
		ends, lost := g.write(r)
		if !ends || !lost {
			if !ends {
				proxy.ServeHTTP(w, r)
				return
			}
			proxy.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
		}
		g.mu.Lock()
		g.cancel()
		g.mu.Unlock()
		panic(http.ErrAbortHandler) // send no response
	}))
	DeferCleanup(server.Close)
	toGate := clientcmdapi.NewConfig()
	toGate.Clusters["host"] = &clientcmdapi.Cluster{Server: server.URL}
	toGate.Contexts["host"] = &clientcmdapi.Context{Cluster: "host"}
	toGate.CurrentContext = "host"
	g.kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*toGate, g.kubeconfig)).To(Succeed())
	return g
}

// random matches the parts of a write that differ between runs of one move or are irrelevant.
var random = regexp.MustCompile(`-(from|to)-[a-z0-9]{5}$|\\?"(resourceVersion|run|uid)\\?":\\?"[^"]*"`)

func (g *gate) write(r *http.Request) (ends, lost bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return true, true
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	write := r.Method + " " + random.ReplaceAllString(r.URL.Path, "-$1")
	if r.Method == http.MethodPatch {
		write += " " + random.ReplaceAllString(string(body), "")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, write)
	return g.ends(write)
}

// run runs the plugin, and ends it at a write. It also returns all writes.
func (g *gate) run(ctx context.Context, ends func(string) (bool, bool), args ...string) (result, []string) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.mu.Lock()
	g.writes, g.ends, g.cancel = nil, ends, cancel
	g.mu.Unlock()
	r := plugin(ctx, g.kubeconfig, args...)
	g.mu.Lock()
	defer g.mu.Unlock()
	return r, g.writes
}
