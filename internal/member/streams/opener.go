package streams

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
)

// streamAnswerTimeout bounds the time until a member begins its response to a stream request.
// The member must first connect to its kubelet.
const streamAnswerTimeout = 20 * time.Second

// Dial connects to an address.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Opener opens log streams and upgraded connections to the member's API server. Each stream has
// its own unbuffered HTTP/1.1 connection, separate from the Link's other calls, so that a slow
// reader does not delay other requests.
type Opener struct {
	server    *url.URL
	transport *http.Transport
	// signed sends requests. signer adds the credentials to upgrade requests.
	signed http.RoundTripper
	signer http.RoundTripper
	asking client.Client
	bearer *budget.Bearer
}

// New creates the transport for streams, with the same proxy and credentials as the
// connection. It sends no request.
func New(config *rest.Config, tlsConfig *tls.Config, way access.Way, bearer *budget.Bearer, asking client.Client) (*Opener, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, access.Problemf(v1alpha1.ReasonKubeconfigInvalid, "the server in the kubeconfig cannot be used: %v", err)
	}
	if tlsConfig != nil {
		tlsConfig = tlsConfig.Clone()
		tlsConfig.NextProtos = []string{"http/1.1"}
	}
	transport := &http.Transport{
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: access.DialTimeout,
		// Upgrade requests bypass the transport's proxy setting, so the dialer itself connects through
		// the proxy.
		DialContext:            way.Through,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		ResponseHeaderTimeout:  streamAnswerTimeout,
		MaxResponseHeaderBytes: budget.HeaderLimit,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, access.Problemf(v1alpha1.ReasonKubeconfigInvalid, "the credentials in the kubeconfig cannot be used: %v", err)
	}
	mirrored, err := rest.HTTPWrappersForConfig(config, proxy.MirrorRequest)
	if err != nil {
		return nil, access.Problemf(v1alpha1.ReasonKubeconfigInvalid, "the credentials in the kubeconfig cannot be used: %v", err)
	}
	return &Opener{
		server: server, transport: transport, bearer: bearer, asking: asking,
		signed: signing{wrapped, bearer}, signer: signing{mirrored, bearer},
	}, nil
}

// Location returns the URL of a path of the member's API. The path must consist of valid names.
func (o *Opener) Location(path ...string) *url.URL { return o.server.JoinPath(path...) }

// Transport returns the transport for requests that are not upgraded. It does not follow redirects.
func (o *Opener) Transport() http.RoundTripper { return o.signed }

// Upgrades returns the transport for upgrade requests. It dials with around(dial), where dial is
// the Link's own Dial.
func (o *Opener) Upgrades(around func(Dial) Dial) proxy.UpgradeRequestRoundTripper {
	transport := o.transport.Clone()
	transport.DialContext = around(o.transport.DialContext)
	return upgrading{transport, o.signer}
}

// May reports whether the Link's account may use a subresource of Pods in a namespace. It queries
// the member.
func (o *Opener) May(ctx context.Context, verb, subresource, namespace string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "pods", Subresource: subresource, Namespace: namespace},
	}}
	if err := o.asking.Create(ctx, review); err != nil {
		return false, access.Explain("check the account's permissions", err)
	}
	return review.Status.Allowed, nil
}

// Token returns the current token, so that callers can remove it from responses that they pass on.
func (o *Opener) Token() string { return o.bearer.Current() }

// upgrading connects with one transport, and adds the credentials with another.
type upgrading struct {
	http.RoundTripper
	signer http.RoundTripper
}

// WrapRequest implements proxy.UpgradeRequestRoundTripper.
func (u upgrading) WrapRequest(request *http.Request) (*http.Request, error) {
	mirrored, err := u.signer.RoundTrip(request) //nolint:bodyclose // it sends nothing, and has no body
	if err != nil {
		return nil, err
	}
	return mirrored.Request, nil
}

// WrappedRoundTripper lets apimachinery find the dialer and the TLS settings.
func (u upgrading) WrappedRoundTripper() http.RoundTripper { return u.RoundTripper }

// signing adds the current token to requests.
type signing struct {
	next   http.RoundTripper
	bearer *budget.Bearer
}

// RoundTrip implements http.RoundTripper.
func (s signing) RoundTrip(request *http.Request) (*http.Response, error) {
	return s.next.RoundTrip(s.bearer.Sign(request))
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (s signing) WrappedRoundTripper() http.RoundTripper { return s.next }

var _ utilnet.RoundTripperWrapper = signing{}
