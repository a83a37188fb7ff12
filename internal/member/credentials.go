package member

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
)

// bearer has the token of a connection, which may be replaced while the connection
// is in use, and the difference between the member's clock and ours.
type bearer struct {
	clock clock.PassiveClock
	token atomic.Pointer[string]
	ahead atomic.Int64
}

func newBearer(token string, c clock.PassiveClock) *bearer {
	b := &bearer{clock: c}
	b.token.Store(&token)
	return b
}

func (b *bearer) current() string { return *b.token.Load() }

func (b *bearer) replace(token string) { b.token.Store(&token) }

// sign gives a request the token.
func sign(request *http.Request, token string) *http.Request {
	if token == "" {
		return request
	}
	request = request.Clone(request.Context()) // a RoundTripper leaves its request as it is
	request.Header.Set("Authorization", "Bearer "+token)
	return request
}

// note takes down what an answer says of the member's clock.
func (b *bearer) note(answer *http.Response) {
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		b.ahead.Store(int64(date.Sub(b.clock.Now())))
	}
}

// now by the member's clock, which its tokens go by, as its last answer told it.
func (b *bearer) now() time.Time { return b.clock.Now().Add(time.Duration(b.ahead.Load())) }

// Credentials are those that a link uses at present.
type Credentials struct {
	connection *connection
	leaf       *guarded.Leaf
	clusterID  string
	note       func(*TokenRenewal)
}

// TokenRenewal is how it stands with a token that is to be renewed.
type TokenRenewal struct {
	// Trouble is why it is not, empty if it is.
	Trouble string
}

// Token in use; empty where it is a client certificate.
func (c *Credentials) Token() string { return c.connection.bearer.current() }

// Now by the member's clock.
func (c *Credentials) Now() time.Time { return c.connection.bearer.now() }

// Report tells the fleet how it stands with the renewal; nil: none is asked for.
func (c *Credentials) Report(renewal *TokenRenewal) { c.note(renewal) }

// Request asks the member for another token of the same account, to be valid for a
// time, which the member may shorten or extend.
func (c *Credentials) Request(ctx context.Context, by guarded.Actor, of Token, lifetime time.Duration) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Account}}
	seconds := int64(lifetime / time.Second)
	review := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := c.leaf.RequestToken(ctx, by, account, review); err != nil {
		return "", explain("ask for a new token", err)
	}
	return review.Status.Token, nil
}

// Verify sees that a token is of the same account, and leads to this very member. Its
// issuer may be another: clusters are given new ones, and go on to take the old one's
// tokens (kube-apiserver: --service-account-issuer).
func (c *Credentials) Verify(ctx context.Context, of Token, token string) error {
	if said, ok := ParseToken(token); !ok || said.Namespace != of.Namespace || said.Account != of.Account {
		return problem(v1alpha1.ReasonUnauthorized, "the member gave a token that is not %s/%s's", of.Namespace, of.Account)
	}
	other, err := c.connection.with(token)
	if err != nil {
		return err
	}
	var system corev1.Namespace
	if err := other.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return explain("read namespace kube-system by the new token", err)
	}
	if string(system.UID) != c.clusterID {
		return problem(v1alpha1.ReasonIdentityChanged, "the new token leads to cluster %s", system.UID)
	}
	return nil
}

// with is a client on the same transport that has another token.
func (c *connection) with(token string) (client.Client, error) {
	calls := *c.calls
	calls.Transport = answers{c.wrapped, newBearer(token, c.bearer.clock), c.limiter}
	other, err := client.New(c.config, client.Options{HTTPClient: &calls, Scheme: c.live.Scheme(), Mapper: mapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return other, nil
}

// renewed is the token of a registration that differs from another one in that
// alone, another token of the same service account: a link goes on with it.
func (r Registration) renewed(was Registration) (string, bool) {
	then, now := was.Kubeconfig, r.Kubeconfig
	was.Kubeconfig, r.Kubeconfig = nil, nil
	if !reflect.DeepEqual(was, r) {
		return "", false
	}
	before, err := ParseKubeconfig(then, true)
	if err != nil {
		return "", false
	}
	after, err := ParseKubeconfig(now, true)
	if err != nil {
		return "", false
	}
	old, ok := ParseToken(before.BearerToken)
	renewed, is := ParseToken(after.BearerToken)
	if !ok || !is || !old.same(renewed) {
		return "", false
	}
	return after.BearerToken, reflect.DeepEqual(wayOf(before), wayOf(after))
}

// wayOf is what ParseKubeconfig sets of a configuration, the token excepted.
func wayOf(c *rest.Config) any {
	return struct {
		host string
		tls  rest.TLSClientConfig
	}{c.Host, c.TLSClientConfig}
}

// expired says that a member may have refused a token because it was too old.
func expired(kubeconfigToken string, now time.Time, err error) error {
	token, ok := ParseToken(kubeconfigToken)
	if p := asProblem(err); !ok || p == nil || p.Reason != v1alpha1.ReasonUnauthorized || now.Before(token.Expires) {
		return err
	}
	return problem(v1alpha1.ReasonUnauthorized,
		"the member refuses the credentials: their token expired at %s. Run kubectl xylem register again for this registration, or put a kubeconfig with a new token into the Secret", token.Expires.UTC().Format(time.RFC3339))
}
