package membertoken

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/access"
)

// maxJitter is the maximum delay of a renewal, as a fraction of the time until it is due. It
// keeps the tokens of all members from being renewed at the same time.
const maxJitter = 0.4

// observed is the input of decide.
type observed struct {
	registration string
	// secret is the registration's Secret, or nil if it does not exist.
	secret *corev1.Secret
	// tokenInUse is the token that the Link uses.
	tokenInUse string
	// now is the current time according to the member's clock.
	now time.Time
	// renewAfter is the share of a token's lifetime after which it is renewed.
	renewAfter float64
}

// decision is the next step, one of the types below.
type decision interface{ isDecision() }

type (
	// ignoreSecret means that the Secret does not request renewal.
	ignoreSecret struct{}
	// refuseRenewal means that the requested renewal is not possible.
	refuseRenewal struct{ why string }
	// awaitLink means that the Link must first start to use the Secret's token.
	awaitLink struct{}
	// awaitDueTime means that the renewal is not due yet. left is the time until then.
	awaitDueTime struct{ left time.Duration }
	// renewNow means that the renewal is due.
	renewNow struct {
		token    access.AccountToken
		lifetime time.Duration
	}
)

func (ignoreSecret) isDecision()  {}
func (refuseRenewal) isDecision() {}
func (awaitLink) isDecision()     {}
func (awaitDueTime) isDecision()  {}
func (renewNow) isDecision()      {}

func decideRenewal(o observed) decision {
	if o.secret == nil {
		return ignoreSecret{}
	}
	asked, ok := o.secret.Annotations[v1alpha1.AnnotationTokenLifetime]
	if !ok {
		return ignoreSecret{}
	}
	lifetime, err := time.ParseDuration(asked)
	if err != nil || lifetime < time.Second {
		return refuseRenewal{fmt.Sprintf("the Secret's annotation %s=%s is not a valid duration. Use a duration such as 24h", v1alpha1.AnnotationTokenLifetime, asked)}
	}
	if o.secret.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
		return refuseRenewal{fmt.Sprintf("the Secret lacks the label %s=%s, without which the manager does not write to it. Add the label, or run `kubectl xylem register` again", v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)}
	}
	raw := access.KubeconfigToken(o.secret.Data[v1alpha1.KubeconfigKey])
	if raw != o.tokenInUse {
		return awaitLink{}
	}
	token, ok := access.ParseAccountToken(raw)
	if !ok {
		return refuseRenewal{"the kubeconfig does not contain a service account token that expires. Run `kubectl xylem register` again"}
	}
	if left := renewalDue(o.registration, token, o.renewAfter).Sub(o.now); left > 0 {
		return awaitDueTime{left}
	}
	return renewNow{token: token, lifetime: lifetime}
}

// renewalDue returns when a token's renewal is due: after a share of its lifetime, plus jitter. The jitter
// is deterministic.
func renewalDue(registration string, token access.AccountToken, after float64) time.Time {
	h := fnv.New32a()
	_, _ = h.Write([]byte(registration + strconv.FormatInt(token.Expires.Unix(), 10))) // Write never fails
	share := after * (1 + maxJitter*float64(h.Sum32())/(1<<32))
	return token.Issued.Add(time.Duration(share * float64(token.Expires.Sub(token.Issued))))
}

// validateNewToken returns an error if the new token does not last longer, or is already due for renewal.
// The member controls the times in the token and its own clock, and could otherwise make the
// manager renew the token continuously.
func validateNewToken(registration string, token, before access.AccountToken, now time.Time, after float64) error {
	if !token.Expires.After(before.Expires) {
		return fmt.Errorf("the member issued a token that does not expire later than the current one: the new token expires at %s", token.Expires.UTC().Format(time.RFC3339))
	}
	if !renewalDue(registration, token, after).After(now) {
		return fmt.Errorf("the member issued a token that is already due for renewal: the token is valid from %s to %s, and the member's clock shows %s",
			token.Issued.UTC().Format(time.RFC3339), token.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}
