package member

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member/access"
	"github.com/xylem-io/xylem/internal/member/budget"
)

// Credentials are the current credentials of a link.
type Credentials struct {
	Connection   *Connection
	MemberWriter *guarded.MemberWriter
	ClusterID    string
	OnRenewal    func(*TokenRenewal)
}

// TokenRenewal is the state of a token renewal.
type TokenRenewal struct {
	// FailureCause is why the renewal failed, or "".
	FailureCause string
}

// CurrentToken returns the current token, or "" if the link uses a client certificate.
func (c *Credentials) CurrentToken() string { return c.Connection.Bearer.CurrentToken() }

// Now returns the time by the member's clock.
func (c *Credentials) Now() time.Time { return c.Connection.Bearer.Now() }

// ReportRenewal reports the state of the renewal to the fleet. Pass nil if no renewal is due.
func (c *Credentials) ReportRenewal(renewal *TokenRenewal) { c.OnRenewal(renewal) }

// RequestToken requests another token for the same account. The member may shorten or extend the
// lifetime.
func (c *Credentials) RequestToken(ctx context.Context, by guarded.Actor, of access.AccountToken, lifetime time.Duration) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Account}}
	seconds := int64(lifetime / time.Second)
	review := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := c.MemberWriter.RequestToken(ctx, by, account, review); err != nil {
		return "", access.ExplainRequestError("request a new token", err)
	}
	return review.Status.Token, nil
}

// VerifyToken verifies that a token belongs to the same account and authenticates with this member. The
// issuer may differ: an admin may change it, and the API server accepts tokens from the old issuer
// for some time (kube-apiserver: --service-account-issuer).
func (c *Credentials) VerifyToken(ctx context.Context, of access.AccountToken, token string) error {
	if parsed, ok := access.ParseAccountToken(token); !ok || parsed.Namespace != of.Namespace || parsed.Account != of.Account {
		return access.ConnectionProblemf(v1alpha1.ReasonUnauthorized, "the member issued a token for an account other than \"%s/%s\". Run `kubectl xylem register` for this registration again", of.Namespace, of.Account)
	}
	other, err := c.Connection.clientWithToken(token)
	if err != nil {
		return err
	}
	var system corev1.Namespace
	if err := other.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return access.ExplainRequestError("read the kube-system namespace with the new token", err)
	}
	if string(system.UID) != c.ClusterID {
		return access.ConnectionProblemf(v1alpha1.ReasonIdentityChanged, access.OtherClusterFormat+", for which the new token was requested", "the kubeconfig", system.UID, "the registration", c.ClusterID)
	}
	return nil
}

// clientWithToken returns a client that uses the same transport with another token.
func (c *Connection) clientWithToken(token string) (client.Client, error) {
	calls := *c.callClient
	calls.Transport = budget.ResponseTransport{Next: c.unsignedTransport, Bearer: budget.NewTokenHolder(token, c.Bearer.Clock), Limiter: c.Limiter}
	other, err := client.New(c.Config, client.Options{HTTPClient: &calls, Scheme: c.Live.Scheme(), Mapper: NewRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return other, nil
}
