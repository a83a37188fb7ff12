package membertoken

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/guarded"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/member/access"
)

const (
	// Name is the name of the controller.
	Name = "member_token"

	actor = guarded.Actor("member-token")

	// DefaultRenewAfter is the share of a token's lifetime after which it is renewed. With jitter, a
	// renewal is due after roughly a third to a half of the lifetime. The rest is left for retries.
	DefaultRenewAfter = 0.35
	// MaxRenewAfter is the maximum of Options.RenewAfter. It leaves time for retries even with the maximum
	// jitter.
	MaxRenewAfter = 0.6

	// checkInterval is the interval at which the cached Secret is checked.
	checkInterval = 20 * time.Second
	// recheckDelay is the delay of the next check while the Link does not use the Secret's token yet.
	recheckDelay = time.Second
	// minRetryDelay and maxRetryDelay bound the backoff after failures.
	minRetryDelay = 10 * time.Second
	maxRetryDelay = 5 * time.Minute
	// renewalTimeout is the timeout of a renewal.
	renewalTimeout = 30 * time.Second
)

// errSecretChanged means that the registration's Secret has changed since it was read.
var errSecretChanged = errors.New("the Secret has changed")

// Credentials reads, requests and verifies the token of a Link, and reports on its renewal.
type Credentials interface {
	CurrentToken() string
	Now() time.Time
	RequestToken(ctx context.Context, by guarded.Actor, of access.AccountToken, lifetime time.Duration) (string, error)
	VerifyToken(ctx context.Context, of access.AccountToken, token string) error
	ReportRenewal(renewal *member.TokenRenewal)
}

// Options configures the controller.
type Options struct {
	// Namespace is the namespace of the Secrets.
	Namespace string
	// RenewAfter is the share of a token's lifetime after which it is renewed.
	RenewAfter float64
}

// renewer renews one member's token.
type renewer struct {
	registration    string
	options         Options
	credentials     Credentials
	cached, live    client.Reader
	root            *guarded.HostWriter
	recorder        events.EventRecorder
	clock           clock.Clock
	backoff         wait.Backoff
	reportedTrouble string
}

// +kubebuilder:rbac:groups="",resources=secrets,namespace=xylem-system,verbs=list;watch;patch

// Setup adds the controller to a Link.
func Setup(link *member.Link, o Options) error {
	r := &renewer{
		registration: link.Registration, options: o, credentials: link.Credentials,
		cached: link.Host, live: link.HostLive, root: link.HostWriter, recorder: link.Recorder, clock: clock.RealClock{},
		backoff: newRenewalBackoff(),
	}
	link.AddRunnable(r.renewUntilDone)
	return nil
}

func newRenewalBackoff() wait.Backoff {
	return wait.Backoff{Duration: minRetryDelay, Factor: 2, Jitter: 0.2, Steps: 6, Cap: maxRetryDelay}
}

func (r *renewer) renewUntilDone(ctx context.Context) error {
	for {
		pause := r.checkToken(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-r.clock.After(pause):
		}
	}
}

// checkToken checks the token once, and returns the delay until the next check.
func (r *renewer) checkToken(ctx context.Context) time.Duration {
	// Read from the cache first. If a renewal is due, read live, because the cache may not contain the
	// last write yet.
	seen, err := r.observeToken(ctx, r.cached)
	if _, is := decideRenewal(seen.observed).(renewNow); is && err == nil {
		seen, err = r.observeToken(ctx, r.live)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not check whether the token is due for renewal", "cluster", r.registration)
		return checkInterval
	}
	switch d := decideRenewal(seen.observed).(type) {
	case refuseRenewal:
		r.reportFailure(seen, fmt.Sprintf("Xylem cannot renew the token in Secret %q: %s", seen.secret.Name, d.why))
	case awaitLink:
		return recheckDelay
	case awaitDueTime:
		r.reportHealthy()
		return min(d.left, checkInterval)
	case renewNow:
		return r.renewToken(ctx, seen, d)
	default:
		r.reportedTrouble = ""
		r.credentials.ReportRenewal(nil)
	}
	return checkInterval
}

// tokenObservation contains what observe has read for a registration.
type tokenObservation struct {
	observed
	registered *v1alpha1.ClusterRegistration
}

func (r *renewer) observeToken(ctx context.Context, from client.Reader) (tokenObservation, error) {
	seen := tokenObservation{registered: &v1alpha1.ClusterRegistration{}}
	if err := from.Get(ctx, client.ObjectKey{Name: r.registration}, seen.registered); err != nil {
		return tokenObservation{}, client.IgnoreNotFound(err) // the link is about to end
	}
	var secret corev1.Secret
	err := from.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: seen.registered.Spec.KubeconfigSecretRef.Name}, &secret)
	if client.IgnoreNotFound(err) != nil {
		return tokenObservation{}, fmt.Errorf("read the Secret of registration %s: %w", r.registration, err)
	}
	if err == nil {
		seen.secret = &secret
	}
	seen.registration, seen.tokenInUse = r.registration, r.credentials.CurrentToken()
	seen.now, seen.renewAfter = r.credentials.Now(), r.options.RenewAfter
	return seen, nil
}

func (r *renewer) renewToken(ctx context.Context, seen tokenObservation, d renewNow) time.Duration {
	callCtx, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	expires, err := r.replaceToken(callCtx, seen.secret, d)
	switch {
	case err == nil:
		r.reportHealthy()
		r.emitTokenRenewed(seen, expires)
		return recheckDelay
	case ctx.Err() != nil, errors.Is(err, errSecretChanged), errors.Is(err, guarded.ErrFenced):
		return recheckDelay // read the Secret again, or the link is about to end
	}
	r.reportFailure(seen, fmt.Sprintf("Xylem could not renew the token, which is valid until %s: %s", d.token.Expires.UTC().Format(time.RFC3339), describeFailure(err)))
	return r.backoff.Step()
}

// replaceToken requests a token, verifies it, and writes it to the Secret, if the Secret has not
// changed.
func (r *renewer) replaceToken(ctx context.Context, secret *corev1.Secret, d renewNow) (time.Time, error) {
	token, err := r.credentials.RequestToken(ctx, actor, d.token, d.lifetime)
	if err != nil {
		return time.Time{}, err
	}
	if err := r.credentials.VerifyToken(ctx, d.token, token); err != nil {
		return time.Time{}, err
	}
	claims, _ := access.ParseAccountToken(token)
	if err := validateNewToken(r.registration, claims, d.token, r.credentials.Now(), r.options.RenewAfter); err != nil {
		return time.Time{}, err
	}
	kubeconfig, err := access.KubeconfigWithToken(secret.Data[v1alpha1.KubeconfigKey], token)
	if err != nil {
		return time.Time{}, err
	}
	after := secret.DeepCopy()
	after.Data[v1alpha1.KubeconfigKey] = kubeconfig
	switch err := r.root.PatchOwned(ctx, actor, secret, after); {
	case apierrors.IsConflict(err):
		return time.Time{}, errSecretChanged
	case err != nil:
		return time.Time{}, err
	}
	return claims.Expires, nil
}

// describeFailure returns the message for a failure, and what to do about it, if known.
func describeFailure(err error) string {
	var p *access.ConnectionProblem
	if errors.As(err, &p) && p.Reason == v1alpha1.ReasonForbidden {
		return p.Message + ". Apply config/member in the member again, or run `kubectl xylem register` for this registration again"
	}
	return err.Error()
}

func (r *renewer) reportHealthy() {
	r.reportedTrouble, r.backoff = "", newRenewalBackoff()
	r.credentials.ReportRenewal(&member.TokenRenewal{})
}

func (r *renewer) reportFailure(seen tokenObservation, trouble string) {
	if trouble != r.reportedTrouble {
		r.reportedTrouble = trouble
		r.emitTokenNotRenewed(seen, trouble)
	}
	r.credentials.ReportRenewal(&member.TokenRenewal{FailureCause: trouble})
}
