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

// jitter is by how much of the time until a renewal that may be put off, so that not
// all members' tokens are renewed at once.
const jitter = 0.4

// observed is what a decision is taken on.
type observed struct {
	registration string
	// secret of the registration, nil if it is gone.
	secret *corev1.Secret
	// using is the token that the Link has.
	using string
	// now by the member's clock.
	now time.Time
	// after is the share of a token's life that passes before it is renewed.
	after float64
}

// decision is one of those below.
type decision interface{ decision() }

type (
	// leave: no renewal is requested.
	leave struct{}
	// refuse: it is requested, and cannot be done.
	refuse struct{ why string }
	// follow: the Link is about to be given the Secret's token.
	follow struct{}
	// hold: the token is fresh for so long.
	hold struct{ left time.Duration }
	// renew: now.
	renew struct {
		token    access.Token
		lifetime time.Duration
	}
)

func (leave) decision()  {}
func (refuse) decision() {}
func (follow) decision() {}
func (hold) decision()   {}
func (renew) decision()  {}

// decide is pure.
func decide(o observed) decision {
	if o.secret == nil {
		return leave{}
	}
	asked, ok := o.secret.Annotations[v1alpha1.AnnotationTokenLifetime]
	if !ok {
		return leave{}
	}
	lifetime, err := time.ParseDuration(asked)
	if err != nil || lifetime < time.Second {
		return refuse{fmt.Sprintf("its annotation %s=%s is no duration. Use one such as 24h", v1alpha1.AnnotationTokenLifetime, asked)}
	}
	if o.secret.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
		return refuse{fmt.Sprintf("it lacks the label %s=%s, without which the manager does not write to it. Add the label, or run `kubectl xylem register` again", v1alpha1.LabelManagedBy, v1alpha1.ManagedByValue)}
	}
	raw := access.TokenOf(o.secret.Data[v1alpha1.KubeconfigKey])
	if raw != o.using {
		return follow{}
	}
	token, ok := access.ParseToken(raw)
	if !ok {
		return refuse{"its kubeconfig has no service account token that expires. Run `kubectl xylem register` again"}
	}
	if left := due(o.registration, token, o.after).Sub(o.now); left > 0 {
		return hold{left}
	}
	return renew{token: token, lifetime: lifetime}
}

// due is when a token is renewed: after a share of its life, and up to jitter of that
// share later. The same for the same token, whenever it is asked.
func due(registration string, token access.Token, after float64) time.Time {
	h := fnv.New32a()
	_, _ = h.Write([]byte(registration + strconv.FormatInt(token.Expires.Unix(), 10))) // it never fails
	share := after * (1 + jitter*float64(h.Sum32())/(1<<32))
	return token.Issued.Add(time.Duration(share * float64(token.Expires.Sub(token.Issued))))
}

// lasting sees that a new token is better than the one before: else the member, which
// says when tokens begin and end, and what its clock says, could have one renewed on
// and on.
func lasting(registration string, token, before access.Token, now time.Time, after float64) error {
	if !token.Expires.After(before.Expires) {
		return fmt.Errorf("the member issued a token that is valid no longer than the present one, until %s", token.Expires.UTC().Format(time.RFC3339))
	}
	if !due(registration, token, after).After(now) {
		return fmt.Errorf("the member issued a token that is due for renewal at once: of %s to %s, by its own clock %s",
			token.Issued.UTC().Format(time.RFC3339), token.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}
