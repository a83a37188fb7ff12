package member

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
)

const (
	// callTimeout bounds every single call to a member, watches excepted; so does
	// a third of the fence's duration, so that no write lands when it has run out.
	callTimeout = 10 * time.Second
	// dialTimeout bounds the connection's set-up.
	dialTimeout = 5 * time.Second
)

// connection is one transport to a member and the clients on it.
type connection struct {
	config    *rest.Config
	transport *http.Transport
	// wrapped is the transport, without a token; bearer has that.
	wrapped http.RoundTripper
	bearer  *bearer
	// limiter bounds what the member's answers take of this process's memory.
	limiter *limiter
	// calls has a timeout; watches has none and serves the caches.
	calls, watches *http.Client
	// live reads and writes, bypassing caches.
	live      client.Client
	discovery discovery.DiscoveryInterface
	// metadata lists kinds that the scheme does not know.
	metadata metadata.Interface
}

// connect makes the transport and clients; nothing is sent yet.
func connect(config *rest.Config, userAgent string, scheme *runtime.Scheme, timeout time.Duration, allowLoopback bool, limits Limits, c clock.PassiveClock) (*connection, error) {
	config = rest.CopyConfig(config)
	bearer := newBearer(config.BearerToken, c)
	config.BearerToken = "" // it is put on below, as it is at the time
	config.UserAgent = userAgent
	// What a member warns of is no news, and would be written into our log.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	// The server's priority and fairness rules shape the load, not the client.
	config.QPS = -1

	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, problem(v1alpha1.ReasonKubeconfigInvalid, "its TLS settings cannot be used: %v", err)
	}
	way, err := wayTo(config.Host, allowLoopback, utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment))
	if err != nil {
		return nil, err
	}
	// A transport of its own, not client-go's shared ones: it is closed with the
	// link. SetTransportDefaults adds HTTP/2 with health checks of idle
	// connections, so that a dead peer is found by the watches as well.
	transport := utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConnsPerHost:    25,
		MaxResponseHeaderBytes: headerLimit,
		Proxy:                  way.proxy,
		DialContext:            way.dial,
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, problem(v1alpha1.ReasonKubeconfigInvalid, "its credentials cannot be used: %v", err)
	}
	limiter := newLimiter(limits, scheme)
	made := &connection{
		limiter:   limiter,
		config:    config,
		transport: transport,
		wrapped:   wrapped,
		bearer:    bearer,
		calls:     &http.Client{Transport: answers{wrapped, bearer, limiter}, Timeout: timeout, CheckRedirect: stay},
		watches:   &http.Client{Transport: answers{wrapped, bearer, limiter}, CheckRedirect: stay},
	}
	if made.live, err = client.New(config, client.Options{HTTPClient: made.calls, Scheme: scheme, Mapper: mapper()}); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if made.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, made.calls); err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	if made.metadata, err = metadata.NewForConfigAndClient(config, made.calls); err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	return made, nil
}

// stay follows no redirect: no API server needs one, and a hostile one would
// have this process ask, from where it stands, what the member cannot reach.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (c *connection) close() { c.transport.CloseIdleConnections() }

// Identity is who a member is.
type Identity struct {
	// ClusterID is the UID of its kube-system namespace.
	ClusterID string
	// Version of its API server, such as v1.36.3.
	Version string
}

// identify asks the member who it is. Errors are Problems.
func (c *connection) identify(ctx context.Context) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var system corev1.Namespace
	if err := c.live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return Identity{}, explain("read namespace kube-system", err)
	}
	var info *version.Info
	info, err := c.discovery.ServerVersion()
	if err != nil {
		return Identity{}, explain("read the version", err)
	}
	// It becomes a label's value and a part of names.
	if len(validation.IsDNS1123Label(string(system.UID))) > 0 {
		return Identity{}, problem(v1alpha1.ReasonUnreachable, "the member has no identity: the UID of its namespace kube-system is none")
	}
	return Identity{ClusterID: string(system.UID), Version: versionOf(info.GitVersion)}, nil
}

// explain makes a Problem of an error of a call to a member.
func explain(doing string, err error) error {
	switch {
	case asProblem(err) != nil:
		return asProblem(err)
	case apierrors.IsUnauthorized(err):
		return problem(v1alpha1.ReasonUnauthorized, "the member refuses the credentials (%s): renew the kubeconfig in the Secret", doing)
	case apierrors.IsForbidden(err):
		return problem(v1alpha1.ReasonForbidden, "the credentials lack a permission (%s): %v", doing, err)
	}
	return problem(v1alpha1.ReasonUnreachable, "the member does not answer (%s): %v", doing, err)
}

// asProblem is the Problem that an error is, or wraps; nil if there is none.
func asProblem(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return nil
}
