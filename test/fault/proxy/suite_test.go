package proxy_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/fault/proxy"
)

const (
	account = "client"
	// pingAfter is how long a test client waits on an idle connection before it sends a ping, and
	// then for the response.
	pingAfter = 200 * time.Millisecond
)

var (
	cluster *controlplane.Cluster
	token   string
)

func TestProxy(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Fault proxy")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	fleet, err := controlplane.Start(ctx, controlplane.Options{
		Progress: func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) },
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(fleet.Stop(ctx)).To(Succeed()) })
	cluster = fleet.Host

	core, rbac := cluster.Client().CoreV1(), cluster.Client().RbacV1()
	_, err = core.ServiceAccounts(metav1.NamespaceDefault).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: account}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	token, err = cluster.ServiceAccountToken(ctx, metav1.NamespaceDefault, account)
	Expect(err).NotTo(HaveOccurred())
})

// start starts a proxy for the current spec.
func start(change ...func(*proxy.Options)) *proxy.Proxy {
	server, err := url.Parse(cluster.Server(controlplane.Direct))
	Expect(err).NotTo(HaveOccurred())
	o := proxy.Options{Name: "host", Server: server, CA: cluster.CA()}
	for _, f := range change {
		f(&o)
	}
	p, err := proxy.New(o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Close)
	return p
}

// config returns a client configuration for a proxy.
func config(p *proxy.Proxy) *rest.Config {
	return &rest.Config{
		Host: p.URL(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: p.CA()}, QPS: -1,
	}
}

// connect creates a client with its own connection. The client sends HTTP/2 pings to detect a dead
// connection, and uses the given content type.
func connect(p *proxy.Proxy, contentType string) kubernetes.Interface {
	c := config(p)
	c.ContentType = contentType
	c.AcceptContentTypes = contentType + "," + runtime.ContentTypeJSON
	tlsConfig, err := rest.TLSConfigFor(c)
	Expect(err).NotTo(HaveOccurred())
	transport := &http.Transport{
		TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
	}
	DeferCleanup(transport.CloseIdleConnections)
	wrapped, err := rest.HTTPWrappersForConfig(c, transport)
	Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfigAndClient(c, &http.Client{Transport: wrapped})
	Expect(err).NotTo(HaveOccurred())
	return client
}

// story is a namespace, and a client that uses a proxy.
type story struct {
	kubernetes.Interface
	namespace string
}

func tell(ctx context.Context, p *proxy.Proxy, contentType string) story {
	ns, err := cluster.Client().CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return story{connect(p, contentType), ns.Name}
}

// create creates a ConfigMap through the proxy.
func (s story) create(ctx context.Context, name string) error {
	_, err := s.CoreV1().ConfigMaps(s.namespace).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// put creates a ConfigMap without the proxy.
func (s story) put(ctx context.Context, name string) {
	Expect(story{cluster.Client(), s.namespace}.create(ctx, name)).To(Succeed())
}

// there reports whether a ConfigMap exists, without the proxy.
func (s story) there(ctx context.Context, name string) bool {
	_, err := cluster.Client().CoreV1().ConfigMaps(s.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	Expect(err).NotTo(HaveOccurred())
	return true
}

// names returns the names of the ConfigMaps in a quorum read through the proxy.
func (s story) names(ctx context.Context) []string {
	list, err := s.CoreV1().ConfigMaps(s.namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// once returns a plan that injects a fault at the next write only.
func once(f proxy.Fault) proxy.Plan {
	done := false
	return func(proxy.Request) proxy.Fault {
		if done {
			return proxy.Pass
		}
		done = true
		return f
	}
}
