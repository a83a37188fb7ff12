package register

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/member/access"
)

// insisting is how long a permanent reason must persist before the plugin reports it, because an
// existing registration may still show the result of an earlier attempt.
const insisting = 5 * time.Second

// final contains the permanent reasons of the condition Connected.
var final = map[string]string{
	v1alpha1.ReasonKubeconfigInvalid: "",
	v1alpha1.ReasonKubeconfigRefused: "",
	v1alpha1.ReasonUnauthorized:      "",
	v1alpha1.ReasonForbidden:         "",
	v1alpha1.ReasonIdentityChanged:   "",
	v1alpha1.ReasonDuplicateCluster:  "",
	v1alpha1.ReasonIsHost:            "",
	v1alpha1.ReasonNodeNameTaken:     "",
}

// patienceOf returns how long a reason in final must persist before the plugin reports it. If the
// member has several API servers, one may take some time to observe the account and the permissions
// that were created through another one. It is pure.
func patienceOf(reason string, first bool) time.Duration {
	switch {
	case reason == v1alpha1.ReasonUnauthorized || reason == v1alpha1.ReasonForbidden:
		return Settling
	case first:
		return 0
	}
	return insisting
}

// connectionWait waits for one registration.
type connectionWait struct {
	// Env provides the streams, the clock, and the manager's namespace.
	Env *command.Env
	// Host reads the registration with the name Name.
	Host client.Reader
	Name string
	// First reports whether this run created the registration.
	First bool
	// Timeout limits the wait.
	Timeout time.Duration

	// expires is the expiry of the new token, which identifies the token.
	expires time.Time
	shown   string
	since   time.Time
	reason  string
}

// AwaitReady waits until the manager has connected and the registration is ready. If the token has an
// expiry, Ready also waits until the manager uses this token. connected reports whether the manager
// has connected, even if Ready returns an error.
func (w *connectionWait) AwaitReady(ctx context.Context, token string) (ready *v1alpha1.ClusterRegistration, connected bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	var cr v1alpha1.ClusterRegistration
	parsed, _ := access.ParseAccountToken(token) // zero without an expiry, so Ready does not wait for this token
	w.expires = parsed.Expires
	err = wait.PollUntilContextCancel(ctx, PollInterval, true, func(ctx context.Context) (bool, error) {
		if err := w.Host.Get(ctx, client.ObjectKey{Name: w.Name}, &cr); err != nil {
			if !command.Refused(err) { // the error may be temporary, or ctx has ended
				return false, nil
			}
			return false, fmt.Errorf("read registration %q: %w", w.Name, err)
		}
		return w.readConditions(&cr)
	})
	connected = meta.IsStatusConditionTrue(cr.Status.Conditions, v1alpha1.ConditionConnected)
	switch {
	case err == nil:
		return &cr, connected, nil
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("the registration was not ready after %s, because %s", w.Timeout, w.missingConditions(&cr))
	case ctx.Err() != nil:
		err = fmt.Errorf("interrupted. The registration was not ready yet, because %s", w.missingConditions(&cr))
	}
	return nil, connected, err
}

func (w *connectionWait) readConditions(cr *v1alpha1.ClusterRegistration) (bool, error) {
	connected := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionConnected)
	now := w.Env.Clock.Now()
	if connected == nil || connected.Reason != w.reason {
		w.reason, w.since = "", now
	}
	if connected != nil && connected.Status != metav1.ConditionTrue {
		w.reason = connected.Reason
		if _, is := final[connected.Reason]; is && now.Sub(w.since) >= patienceOf(connected.Reason, w.First) {
			return false, fmt.Errorf("the manager cannot connect (%s): %s", connected.Reason, connected.Message)
		}
	}
	ready := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == cr.Generation && w.usesSecret(cr) {
		return true, nil
	}
	if shown := describeProgress(cr); shown != w.shown {
		w.shown = shown
		fmt.Fprintln(w.Env.ErrOut, shown)
	}
	return false, nil
}

// usesSecret reports whether the manager uses the new token.
func (w *connectionWait) usesSecret(cr *v1alpha1.ClusterRegistration) bool {
	return w.expires.IsZero() || cr.Status.TokenExpires != nil && cr.Status.TokenExpires.Time.Equal(w.expires)
}

// describeProgress returns a line about what the command waits for. Nothing in it is a failure yet. It is
// pure.
func describeProgress(cr *v1alpha1.ClusterRegistration) string {
	switch c := unmetCondition(cr); {
	case len(cr.Status.Conditions) == 0:
		return "waiting for the manager to read the registration"
	case c == nil:
		return "waiting for the manager to use the new token and settings"
	case c.Reason == v1alpha1.ReasonUnauthorized, c.Reason == v1alpha1.ReasonForbidden:
		return "waiting for the member to accept the new token and permissions"
	default:
		return "waiting: " + c.Message
	}
}

// unmetCondition returns the first condition that is not True yet, or nil.
func unmetCondition(cr *v1alpha1.ClusterRegistration) *metav1.Condition {
	for _, kind := range []string{v1alpha1.ConditionConnected, v1alpha1.ConditionReady} {
		if c := meta.FindStatusCondition(cr.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// missingConditions returns the reason why the registration is not ready yet. It is pure.
func (w *connectionWait) missingConditions(cr *v1alpha1.ClusterRegistration) string {
	if c := unmetCondition(cr); c != nil {
		return fmt.Sprintf("condition %s is not True (%s): %s", c.Type, c.Reason, c.Message)
	}
	if len(cr.Status.Conditions) == 0 {
		return fmt.Sprintf("the manager has not reconciled the registration yet. Check that the manager is running: `kubectl -n %s get pods`", w.Env.Namespace)
	}
	return "the manager has not reconciled the change yet"
}
