package member

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
)

// CallTimeout bounds every single call to a member, watches excepted; so does
// a third of the fence's duration, so that no write arrives after it has expired.
const CallTimeout = 10 * time.Second

// Connection is one transport to a member and the clients on it.
type Connection struct {
	Config    *rest.Config
	transport *http.Transport
	// wrapped is the transport, without a token; bearer has that.
	wrapped http.RoundTripper
	Bearer  *budget.Bearer
	// Limiter bounds what the member's answers take of this process's memory.
	Limiter *budget.Limiter
	// calls has a timeout; watches has none and serves the caches.
	calls, Watches *http.Client
	// Live reads and writes, bypassing caches.
	Live      client.Client
	Discovery discovery.DiscoveryInterface
	// Metadata lists kinds that the scheme does not know.
	Metadata metadata.Interface
	// Streams are for what users stream from the member's Pods.
	Streams *Streams
}

// Connect makes the transport and clients; nothing is sent yet.
func Connect(config *rest.Config, userAgent string, scheme *runtime.Scheme, timeout time.Duration, allowLoopback bool, limits budget.Limits, c clock.PassiveClock) (*Connection, error) {
	config = rest.CopyConfig(config)
	bearer := budget.NewBearer(config.BearerToken, c)
	config.BearerToken = "" // it is put on below, as it is at the time
	config.UserAgent = userAgent
	// What a member warns of is no news, and would be written into our log.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	// The server's priority and fairness rules shape the load, not the client.
	config.QPS = -1

	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, access.Problemf(v1alpha1.ReasonKubeconfigInvalid, "the kubeconfig's TLS settings cannot be used: %v", err)
	}
	way, err := access.WayTo(config.Host, allowLoopback, utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment))
	if err != nil {
		return nil, err
	}
	// A transport of its own, not client-go's shared ones: it is closed with the
	// link. SetTransportDefaults adds HTTP/2 with health checks of idle
	// connections, so that a dead peer is found by the watches as well.
	transport := utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    access.DialTimeout,
		MaxIdleConnsPerHost:    25,
		MaxResponseHeaderBytes: budget.HeaderLimit,
		Proxy:                  way.Proxy,
		DialContext:            way.Dial,
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, access.Problemf(v1alpha1.ReasonKubeconfigInvalid, "the kubeconfig's credentials cannot be used: %v", err)
	}
	limiter := budget.NewLimiter(limits, scheme)
	made := &Connection{
		Limiter:   limiter,
		Config:    config,
		transport: transport,
		wrapped:   wrapped,
		Bearer:    bearer,
		calls:     &http.Client{Transport: budget.Answers{Next: wrapped, Bearer: bearer, Limiter: limiter}, Timeout: timeout, CheckRedirect: stay},
		Watches:   &http.Client{Transport: budget.Answers{Next: wrapped, Bearer: bearer, Limiter: limiter}, CheckRedirect: stay},
	}
	if made.Live, err = client.New(config, client.Options{HTTPClient: made.calls, Scheme: scheme, Mapper: Mapper()}); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if made.Discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, made.calls); err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	if made.Metadata, err = metadata.NewForConfigAndClient(config, made.calls); err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	if made.Streams, err = newStreams(config, tlsConfig, way, bearer, made.Live); err != nil {
		return nil, err
	}
	return made, nil
}

// stay follows no redirect: no API server needs one, and a hostile one would
// have this process ask, from where it stands, what the member cannot reach.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close the connections that are idle.
func (c *Connection) Close() { c.transport.CloseIdleConnections() }

// Identity is who a member is.
type Identity struct {
	// ClusterID is the UID of its kube-system namespace.
	ClusterID string
	// Version of its API server, such as v1.36.3.
	Version string
}

// Identify asks the member who it is. Errors are Problems.
func (c *Connection) Identify(ctx context.Context) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var system corev1.Namespace
	if err := c.Live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return Identity{}, access.Explain("read namespace kube-system", err)
	}
	var info *version.Info
	info, err := c.Discovery.ServerVersion()
	if err != nil {
		return Identity{}, access.Explain("read the version", err)
	}
	// It becomes a label's value and a part of names.
	if len(validation.IsDNS1123Label(string(system.UID))) > 0 {
		return Identity{}, access.Problemf(v1alpha1.ReasonUnreachable, "the member has no identity: its namespace kube-system has no valid UID. Check the server in the kubeconfig")
	}
	return Identity{ClusterID: string(system.UID), Version: versionOf(info.GitVersion)}, nil
}

// versions are what Kubernetes and its distributions call themselves.
var versions = regexp.MustCompile(`^v?[0-9]+\.[0-9]+[0-9A-Za-z.+_-]{0,56}$`)

// UnknownVersion represents what a member says that is no version: it would be
// shown in the registration, and on the virtual node.
const UnknownVersion = "unknown"

func versionOf(said string) string {
	if versions.MatchString(said) {
		return said
	}
	return UnknownVersion
}
