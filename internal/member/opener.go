package member

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

// streamHeaderTimeout bounds the time until a member begins its response to a stream request.
// The member must first connect to its kubelet.
const streamHeaderTimeout = 20 * time.Second

// DialFunc connects to an address.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// StreamOpener opens log streams and upgraded connections to the member's API server. Each stream has
// its own unbuffered HTTP/1.1 connection, separate from the Link's other calls, so that a slow
// reader does not delay other requests.
type StreamOpener struct {
	server    *url.URL
	transport *http.Transport
	// signedTransport sends requests. signer adds the credentials to upgrade requests.
	signedTransport http.RoundTripper
	upgradeSigner   http.RoundTripper
	reviewClient    client.Client
	bearer          *budget.TokenHolder
}

// NewStreamOpener creates the transport for streams, with the same proxy and credentials as the
// connection. It sends no request.
func NewStreamOpener(config *rest.Config, tlsConfig *tls.Config, way access.DialSettings, bearer *budget.TokenHolder, asking client.Client) (*StreamOpener, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, access.ConnectionProblemf(v1alpha1.ReasonKubeconfigInvalid, "the server in the kubeconfig cannot be used: %v", err)
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
		DialContext:            way.DialThroughProxy,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		ResponseHeaderTimeout:  streamHeaderTimeout,
		MaxResponseHeaderBytes: budget.MaxHeaderBytes,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, access.ConnectionProblemf(v1alpha1.ReasonKubeconfigInvalid, "the credentials in the kubeconfig cannot be used: %v", err)
	}
	mirrored, err := rest.HTTPWrappersForConfig(config, proxy.MirrorRequest)
	if err != nil {
		return nil, access.ConnectionProblemf(v1alpha1.ReasonKubeconfigInvalid, "the credentials in the kubeconfig cannot be used: %v", err)
	}
	return &StreamOpener{
		server: server, transport: transport, bearer: bearer, reviewClient: asking,
		signedTransport: signingTransport{wrapped, bearer}, upgradeSigner: signingTransport{mirrored, bearer},
	}, nil
}

// URLForPath returns the URL of a path of the member's API. The path must consist of valid names.
func (o *StreamOpener) URLForPath(path ...string) *url.URL { return o.server.JoinPath(path...) }

// RequestTransport returns the transport for requests that are not upgraded. It does not follow redirects.
func (o *StreamOpener) RequestTransport() http.RoundTripper { return o.signedTransport }

// UpgradeTransport returns the transport for upgrade requests. It dials with around(dial), where dial is
// the Link's own DialFunc.
func (o *StreamOpener) UpgradeTransport(around func(DialFunc) DialFunc) proxy.UpgradeRequestRoundTripper {
	transport := o.transport.Clone()
	transport.DialContext = around(o.transport.DialContext)
	return upgradeTransport{transport, o.upgradeSigner}
}

// HasPermission reports whether the Link's account may use a subresource of Pods in a namespace. It queries
// the member.
func (o *StreamOpener) HasPermission(ctx context.Context, verb, subresource, namespace string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "pods", Subresource: subresource, Namespace: namespace},
	}}
	if err := o.reviewClient.Create(ctx, review); err != nil {
		return false, access.ExplainRequestError("check the account's permissions", err)
	}
	return review.Status.Allowed, nil
}

// CurrentToken returns the current token, so that callers can remove it from responses that they pass on.
func (o *StreamOpener) CurrentToken() string { return o.bearer.CurrentToken() }

// upgradeTransport connects with one transport, and adds the credentials with another.
type upgradeTransport struct {
	http.RoundTripper
	signer http.RoundTripper
}

// WrapRequest implements proxy.UpgradeRequestRoundTripper.
func (u upgradeTransport) WrapRequest(request *http.Request) (*http.Request, error) {
	mirrored, err := u.signer.RoundTrip(request) //nolint:bodyclose // it sends nothing, and has no body
	if err != nil {
		return nil, err
	}
	return mirrored.Request, nil
}

// WrappedRoundTripper lets apimachinery find the dialer and the TLS settings.
func (u upgradeTransport) WrappedRoundTripper() http.RoundTripper { return u.RoundTripper }

// signingTransport adds the current token to requests.
type signingTransport struct {
	next   http.RoundTripper
	bearer *budget.TokenHolder
}

// RoundTrip implements http.RoundTripper.
func (s signingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return s.next.RoundTrip(s.bearer.SignRequest(request))
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (s signingTransport) WrappedRoundTripper() http.RoundTripper { return s.next }

var _ utilnet.RoundTripperWrapper = signingTransport{}
