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

	// DefaultAfter is the share of a token's lifetime after which it is renewed. With jitter, a
	// renewal is due after roughly a third to a half of the lifetime. The rest is left for retries.
	DefaultAfter = 0.35
	// MaxAfter is the maximum of Options.After. It leaves time for retries even with the maximum
	// jitter.
	MaxAfter = 0.6

	// look is the interval at which the cached Secret is checked.
	look = 20 * time.Second
	// soon is the delay of the next check while the Link does not use the Secret's token yet.
	soon = time.Second
	// firstRetry and lastRetry bound the backoff after failures.
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
	// callTimeout is the timeout of a renewal.
	callTimeout = 30 * time.Second
)

// errChanged means that the registration's Secret has changed since it was read.
var errChanged = errors.New("the Secret has changed")

// Credentials reads, requests and verifies the token of a Link, and reports on its renewal.
type Credentials interface {
	Token() string
	Now() time.Time
	Request(ctx context.Context, by guarded.Actor, of access.Token, lifetime time.Duration) (string, error)
	Verify(ctx context.Context, of access.Token, token string) error
	Report(renewal *member.TokenRenewal)
}

// Options configures the controller.
type Options struct {
	// Namespace is the namespace of the Secrets.
	Namespace string
	// After is the share of a token's lifetime after which it is renewed.
	After float64
}

// renewer renews one member's token.
type renewer struct {
	registration string
	options      Options
	credentials  Credentials
	cached, live client.Reader
	root         *guarded.Root
	recorder     events.EventRecorder
	clock        clock.Clock
	backoff      wait.Backoff
	trouble      string
}

// +kubebuilder:rbac:groups="",resources=secrets,namespace=xylem-system,verbs=list;watch;patch

// Setup adds the controller to a Link.
func Setup(link *member.Link, o Options) error {
	r := &renewer{
		registration: link.Registration, options: o, credentials: link.Credentials,
		cached: link.Host, live: link.HostLive, root: link.Root, recorder: link.Recorder, clock: clock.RealClock{},
		backoff: newBackoff(),
	}
	link.Run(r.run)
	return nil
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: firstRetry, Factor: 2, Jitter: 0.2, Steps: 6, Cap: lastRetry}
}

func (r *renewer) run(ctx context.Context) error {
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
	seen, err := r.observe(ctx, r.cached)
	if _, is := decide(seen.observed).(renew); is && err == nil {
		seen, err = r.observe(ctx, r.live)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not check whether the token is due for renewal", "cluster", r.registration)
		return look
	}
	switch d := decide(seen.observed).(type) {
	case refuse:
		r.failed(seen, fmt.Sprintf("Xylem cannot renew the token in Secret %q: %s", seen.secret.Name, d.why))
	case follow:
		return soon
	case hold:
		r.well()
		return min(d.left, look)
	case renew:
		return r.renew(ctx, seen, d)
	default:
		r.trouble = ""
		r.credentials.Report(nil)
	}
	return look
}

// sight contains what observe has read for a registration.
type sight struct {
	observed
	registered *v1alpha1.ClusterRegistration
}

func (r *renewer) observe(ctx context.Context, from client.Reader) (sight, error) {
	seen := sight{registered: &v1alpha1.ClusterRegistration{}}
	if err := from.Get(ctx, client.ObjectKey{Name: r.registration}, seen.registered); err != nil {
		return sight{}, client.IgnoreNotFound(err) // the link is about to end
	}
	var secret corev1.Secret
	err := from.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: seen.registered.Spec.KubeconfigSecretRef.Name}, &secret)
	if client.IgnoreNotFound(err) != nil {
		return sight{}, fmt.Errorf("read the Secret of registration %s: %w", r.registration, err)
	}
	if err == nil {
		seen.secret = &secret
	}
	seen.registration, seen.using = r.registration, r.credentials.Token()
	seen.now, seen.after = r.credentials.Now(), r.options.After
	return seen, nil
}

func (r *renewer) renew(ctx context.Context, seen sight, d renew) time.Duration {
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	expires, err := r.replace(callCtx, seen.secret, d)
	switch {
	case err == nil:
		r.well()
		r.eventRenewed(seen, expires)
		return soon
	case ctx.Err() != nil, errors.Is(err, errChanged), errors.Is(err, guarded.ErrFenced):
		return soon // read the Secret again, or the link is about to end
	}
	r.failed(seen, fmt.Sprintf("Xylem could not renew the token, which is valid until %s: %s", d.token.Expires.UTC().Format(time.RFC3339), reason(err)))
	return r.backoff.Step()
}

// replace requests a token, verifies it, and writes it to the Secret, if the Secret has not
// changed.
func (r *renewer) replace(ctx context.Context, secret *corev1.Secret, d renew) (time.Time, error) {
	token, err := r.credentials.Request(ctx, actor, d.token, d.lifetime)
	if err != nil {
		return time.Time{}, err
	}
	if err := r.credentials.Verify(ctx, d.token, token); err != nil {
		return time.Time{}, err
	}
	claims, _ := access.ParseToken(token)
	if err := lasting(r.registration, claims, d.token, r.credentials.Now(), r.options.After); err != nil {
		return time.Time{}, err
	}
	kubeconfig, err := access.WithToken(secret.Data[v1alpha1.KubeconfigKey], token)
	if err != nil {
		return time.Time{}, err
	}
	after := secret.DeepCopy()
	after.Data[v1alpha1.KubeconfigKey] = kubeconfig
	switch err := r.root.Patch(ctx, actor, secret, after); {
	case apierrors.IsConflict(err):
		return time.Time{}, errChanged
	case err != nil:
		return time.Time{}, err
	}
	return claims.Expires, nil
}

// reason returns the message for a failure, and what to do about it, if known.
func reason(err error) string {
	var p *access.Problem
	if errors.As(err, &p) && p.Reason == v1alpha1.ReasonForbidden {
		return p.Message + ". Apply config/member in the member again, or run `kubectl xylem register` for this registration again"
	}
	return err.Error()
}

func (r *renewer) well() {
	r.trouble, r.backoff = "", newBackoff()
	r.credentials.Report(&member.TokenRenewal{})
}

func (r *renewer) failed(seen sight, trouble string) {
	if trouble != r.trouble {
		r.trouble = trouble
		r.eventNotRenewed(seen, trouble)
	}
	r.credentials.Report(&member.TokenRenewal{Trouble: trouble})
}
