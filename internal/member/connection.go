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

// CallTimeout bounds every call to a member except watches. A call also ends after a third of the
// fence's duration, so that no write arrives after the fence has expired.
const CallTimeout = 10 * time.Second

// Connection is one transport to a member, and the clients that use it.
type Connection struct {
	Config     *rest.Config
	transports []*http.Transport
	// unsignedTransport is the transport without a token. Bearer holds the token.
	unsignedTransport http.RoundTripper
	Bearer            *budget.TokenHolder
	// Limiter limits how much memory of this process the member's responses take.
	Limiter *budget.MemoryLimiter
	// callClient has a timeout. Watches, which the caches use, has none.
	callClient, Watches *http.Client
	// Live reads and writes directly, bypassing caches. Fence does so for the fence, over its own connection
	// and with its own budget: behind the lists of a large member, renewals would be too late.
	Live, Fence client.Client
	Discovery   discovery.DiscoveryInterface
	// Metadata lists kinds that are not in the scheme.
	Metadata metadata.Interface
	// Streams opens log streams and connections to the member's Pods.
	Streams *StreamOpener
}

// NewConnection creates the transport and the clients. It sends no request.
func NewConnection(config *rest.Config, userAgent string, scheme *runtime.Scheme, timeout time.Duration, allowLoopback bool, limits budget.MemoryLimits, c clock.PassiveClock) (*Connection, error) {
	config = rest.CopyConfig(config)
	bearer := budget.NewTokenHolder(config.BearerToken, c)
	config.BearerToken = "" // Answers adds the current token
	config.UserAgent = userAgent
	// Ignore the member's warnings: client-go would write them to the manager's log.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	// The server limits the rate (API Priority and Fairness), not the client.
	config.QPS = -1

	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, access.ConnectionProblemf(v1alpha1.ReasonKubeconfigInvalid, "the TLS settings in the kubeconfig cannot be used: %v", err)
	}
	way, err := access.DialSettingsFor(config.Host, allowLoopback, utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment))
	if err != nil {
		return nil, err
	}
	// The link has its own transport, not one of client-go's shared ones, because it closes the
	// connections when it ends. SetTransportDefaults adds HTTP/2 health checks of idle connections,
	// so watches also detect a dead peer.
	var transports []*http.Transport
	var wrapped [2]http.RoundTripper
	for i := range wrapped {
		transports = append(transports, utilnet.SetTransportDefaults(&http.Transport{
			TLSClientConfig:        tlsConfig.Clone(), // SetTransportDefaults changes it
			TLSHandshakeTimeout:    access.DialTimeout,
			MaxIdleConnsPerHost:    25,
			MaxResponseHeaderBytes: budget.MaxHeaderBytes,
			Proxy:                  way.Proxy,
			DialContext:            way.Dial,
		}))
		if wrapped[i], err = rest.HTTPWrappersForConfig(config, transports[i]); err != nil {
			return nil, access.ConnectionProblemf(v1alpha1.ReasonKubeconfigInvalid, "the credentials in the kubeconfig cannot be used: %v", err)
		}
	}
	limiter := budget.NewMemoryLimiter(limits, scheme)
	made := &Connection{
		Limiter:           limiter,
		Config:            config,
		transports:        transports,
		unsignedTransport: wrapped[0],
		Bearer:            bearer,
		callClient:        &http.Client{Transport: budget.ResponseTransport{Next: wrapped[0], Bearer: bearer, Limiter: limiter}, Timeout: timeout, CheckRedirect: refuseRedirects},
		Watches:           &http.Client{Transport: budget.ResponseTransport{Next: wrapped[0], Bearer: bearer, Limiter: limiter}, CheckRedirect: refuseRedirects},
	}
	if made.Live, err = client.New(config, client.Options{HTTPClient: made.callClient, Scheme: scheme, Mapper: NewRESTMapper()}); err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	renewing := &http.Client{Transport: budget.ResponseTransport{Next: wrapped[1], Bearer: bearer, Limiter: limiter, ForFence: true}, Timeout: timeout, CheckRedirect: refuseRedirects}
	if made.Fence, err = client.New(config, client.Options{HTTPClient: renewing, Scheme: scheme, Mapper: NewRESTMapper()}); err != nil {
		return nil, fmt.Errorf("create a client for the fence: %w", err)
	}
	if made.Discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, made.callClient); err != nil {
		return nil, fmt.Errorf("create a discovery client: %w", err)
	}
	if made.Metadata, err = metadata.NewForConfigAndClient(config, made.callClient); err != nil {
		return nil, fmt.Errorf("create a metadata client: %w", err)
	}
	if made.Streams, err = NewStreamOpener(config, tlsConfig, way, bearer, made.Live); err != nil {
		return nil, err
	}
	return made, nil
}

// refuseRedirects does not follow redirects. API servers do not need them, and a hostile server could use them
// to make this process send requests to addresses that the member itself cannot reach.
func refuseRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes the idle connections.
func (c *Connection) Close() {
	for _, transport := range c.transports {
		transport.CloseIdleConnections()
	}
}

// Identity identifies a member.
type Identity struct {
	// ClusterID is the UID of the member's kube-system namespace.
	ClusterID string
	// Version is the version of the member's API server, such as v1.36.3.
	Version string
}

// ReadIdentity reads the member's identity. Errors are Problems.
func (c *Connection) ReadIdentity(ctx context.Context) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var system corev1.Namespace
	if err := c.Live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return Identity{}, access.ExplainRequestError("read the kube-system namespace", err)
	}
	var info *version.Info
	info, err := c.Discovery.ServerVersion()
	if err != nil {
		return Identity{}, access.ExplainRequestError("read the version", err)
	}
	// The UID must be valid, because Xylem uses it as a label value and in names.
	if len(validation.IsDNS1123Label(string(system.UID))) > 0 {
		return Identity{}, access.ConnectionProblemf(v1alpha1.ReasonUnreachable, "the member has no identity: its kube-system namespace has no valid UID. Check the server in the kubeconfig")
	}
	return Identity{ClusterID: string(system.UID), Version: validVersion(info.GitVersion)}, nil
}

// versionPattern matches the version strings of Kubernetes and its distributions.
var versionPattern = regexp.MustCompile(`^v?[0-9]+\.[0-9]+[0-9A-Za-z.+_-]{0,56}$`)

// UnknownVersion replaces a version that is not valid, because the registration and the virtual
// node show the version.
const UnknownVersion = "unknown"

func validVersion(reported string) string {
	if versionPattern.MatchString(reported) {
		return reported
	}
	return UnknownVersion
}
