package move_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/xylem-io/xylem/test/controlplane"
)

// gate is between the plugin and the host's API server. It ends the plugin at one of its writes, as
// a kill would: the server either has processed the write, or has not received it.
type gate struct {
	kubeconfig string

	mu     sync.Mutex
	writes []string
	// at is the number of the write that ends the run; 0: none. lost means that the server does not
	// receive it.
	at     int
	lost   bool
	cancel context.CancelFunc
}

func newGate() *gate {
	GinkgoHelper()
	config, err := x.Fleet.Host.RESTConfig(controlplane.Direct)
	Expect(err).NotTo(HaveOccurred())
	config.NextProtos = []string{"http/1.1"} // for streams
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
		panic(http.ErrAbortHandler) // no reply
	}))
	DeferCleanup(server.Close)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["host"] = &clientcmdapi.Cluster{Server: server.URL}
	kubeconfig.Contexts["host"] = &clientcmdapi.Context{Cluster: "host"}
	kubeconfig.CurrentContext = "host"
	g.kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*kubeconfig, g.kubeconfig)).To(Succeed())
	return g
}

func (g *gate) write(r *http.Request) (ends, lost bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, r.Method+" "+r.URL.Path)
	return len(g.writes) == g.at, g.lost
}

// run runs the plugin, and ends it at a write. It returns the writes.
func (g *gate) run(ctx context.Context, at int, lost bool, args ...string) (result, []string) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.mu.Lock()
	g.writes, g.at, g.lost, g.cancel = nil, at, lost, cancel
	g.mu.Unlock()
	r := plugin(ctx, g.kubeconfig, args...)
	g.mu.Lock()
	defer g.mu.Unlock()
	return r, g.writes
}
