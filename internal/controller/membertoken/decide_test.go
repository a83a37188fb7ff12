package membertoken

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/access"
)

const day = 24 * time.Hour

var issued = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func token(life time.Duration) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte("{}")) + "." + part(fmt.Appendf(nil, `{"iss":"i","sub":"system:serviceaccount:xylem-system:xylem","iat":%d,"exp":%d}`,
		issued.Unix(), issued.Add(life).Unix())) + ".s"
}

func secret(raw string, change ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
			Annotations: map[string]string{v1alpha1.AnnotationTokenLifetime: "24h0m0s"},
		},
		Data: map[string][]byte{v1alpha1.KubeconfigKey: fmt.Appendf(nil, `{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"https://member"}}],"users":[{"name":"u","user":{"token":%q}}]}`, raw)},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func TestDecide(t *testing.T) {
	fresh := token(day)
	said, ok := access.ParseAccountToken(fresh)
	if !ok {
		t.Fatal("not a token")
	}
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		using  string
		after  time.Duration // since the token was issued
		want   decision
	}{
		"the Secret does not exist":                      {nil, fresh, 0, ignoreSecret{}},
		"the Secret does not request renewal":            {secret(fresh, func(s *corev1.Secret) { s.Annotations = nil }), fresh, 20 * time.Hour, ignoreSecret{}},
		"the token is fresh":                             {secret(fresh), fresh, time.Hour, awaitDueTime{renewalDue("cluster38", said, 0.5).Sub(issued.Add(time.Hour))}},
		"the token is due for renewal":                   {secret(fresh), fresh, 17 * time.Hour, renewNow{said, day}},
		"the token has expired":                          {secret(fresh), fresh, 2 * day, renewNow{said, day}},
		"the link uses another token":                    {secret(fresh), token(2 * day), 17 * time.Hour, awaitLink{}},
		"the kubeconfig contains a certificate":          {secret(""), "", 0, refuseRenewal{}},
		"the kubeconfig contains an opaque token":        {secret("abc"), "abc", 0, refuseRenewal{}},
		"the requested lifetime is not a valid duration": {secret(fresh, func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationTokenLifetime] = "soon" }), fresh, 0, refuseRenewal{}},
		"the Secret is foreign":                          {secret(fresh, func(s *corev1.Secret) { s.Labels = nil }), fresh, 0, refuseRenewal{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := decideRenewal(observed{registration: "cluster38", secret: tc.secret, tokenInUse: tc.using, now: issued.Add(tc.after), renewAfter: 0.5})
			if r, is := got.(refuseRenewal); is && r.why != "" {
				got = refuseRenewal{}
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %#v, want %#v", got, tc.want)
			}
		})
	}
}

// A renewal is due after a third to a half of any lifetime. The time differs between members and
// between renewals, and is deterministic.
func TestDue(t *testing.T) {
	for _, life := range []time.Duration{10 * time.Minute, day, 365 * day} {
		at := map[time.Time]bool{}
		for i := range 50 {
			said := access.AccountToken{Issued: issued, Expires: issued.Add(life)}
			name := fmt.Sprintf("cluster%d", i)
			when := renewalDue(name, said, DefaultRenewAfter)
			if share := float64(when.Sub(issued)) / float64(life); share < 0.35 || share > 0.491 {
				t.Errorf("%s, whose token has a lifetime of %s, is due after a share of %v", name, life, share)
			}
			if again := renewalDue(name, said, DefaultRenewAfter); again != when {
				t.Errorf("%s is due at %s, then at %s", name, when, again)
			}
			at[when] = true
		}
		if len(at) < 45 {
			t.Errorf("50 tokens with a lifetime of %s are due at only %d different times", life, len(at))
		}
	}
}

// A member that reports wrong times cannot make the manager renew its token continuously.
func TestLasting(t *testing.T) {
	at := func(from, to time.Duration) access.AccountToken {
		return access.AccountToken{Issued: issued.Add(from), Expires: issued.Add(to)}
	}
	before, now := at(0, day), issued.Add(12*time.Hour)
	for name, tc := range map[string]struct {
		token access.AccountToken
		now   time.Time
		want  bool
	}{
		"the token is valid and expires later than the current one":                {at(12*time.Hour, 36*time.Hour), now, true},
		"the token has a shorter lifetime, but expires later than the current one": {at(12*time.Hour, 26*time.Hour), now, true},
		"the token expires at the same time as the current one":                    {at(12*time.Hour, day), now, false},
		"the token was issued long ago":                                            {at(-100*day, 36*time.Hour), now, false},
		"the member's clock is far ahead":                                          {at(12*time.Hour, 36*time.Hour), now.Add(365 * day), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := validateNewToken("cluster38", tc.token, before, tc.now, DefaultRenewAfter); (err == nil) != tc.want {
				t.Errorf("lasting() = %v, want no error: %t", err, tc.want)
			}
		})
	}
}
