package register

import (
	"io"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
)

func TestPermanentReasons(t *testing.T) {
	before := &v1alpha1.ClusterRegistration{}
	for name, c := range map[string]struct {
		reason string
		before *v1alpha1.ClusterRegistration
		lasts  time.Duration
		end    bool
	}{
		"node name taken: fails immediately":                 {reason: v1alpha1.ReasonNodeNameTaken, end: true},
		"node name taken, reported before this run: waits":   {reason: v1alpha1.ReasonNodeNameTaken, before: before},
		"node name taken, still reported: fails":             {reason: v1alpha1.ReasonNodeNameTaken, before: before, lasts: insisting, end: true},
		"unauthorized: waits":                                {reason: v1alpha1.ReasonUnauthorized},
		"unauthorized, before the settling time ends: waits": {reason: v1alpha1.ReasonUnauthorized, lasts: Settling - time.Second},
		"unauthorized, after the settling time: fails":       {reason: v1alpha1.ReasonUnauthorized, lasts: Settling, end: true},
		"forbidden, before the settling time ends: waits":    {reason: v1alpha1.ReasonForbidden, before: before, lasts: insisting},
		"forbidden, after the settling time: fails":          {reason: v1alpha1.ReasonForbidden, before: before, lasts: Settling, end: true},
		"unreachable: waits":                                 {reason: v1alpha1.ReasonUnreachable, lasts: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			env := command.NewEnv(genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}, clock)
			w := connectionWait{Env: env, First: c.before == nil}
			cr := &v1alpha1.ClusterRegistration{}
			cr.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionFalse, Reason: c.reason}}
			_, err := w.readConditions(cr)
			if c.lasts > 0 {
				if err != nil {
					t.Fatalf("got error %v immediately, want none yet", err)
				}
				clock.Step(c.lasts)
				_, err = w.readConditions(cr)
			}
			if (err != nil) != c.end {
				t.Errorf("got error %v, want an error: %t", err, c.end)
			}
		})
	}
}

// TestProgressIsCalm checks that steps of a normal registration do not read as failures.
func TestProgressIsCalm(t *testing.T) {
	condition := func(kind, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"not read yet":         {want: "waiting for the manager to read the registration"},
		"connecting":           {condition(v1alpha1.ConditionConnected, v1alpha1.ReasonConnecting, "Xylem is connecting to the member"), "waiting: Xylem is connecting to the member"},
		"permissions settling": {condition(v1alpha1.ConditionConnected, v1alpha1.ReasonForbidden, "the member denies …"), "waiting for the member to accept the new token and permissions"},
		"syncing":              {condition(v1alpha1.ConditionReady, v1alpha1.ReasonSyncing, "Xylem is reading the member's objects"), "waiting: Xylem is reading the member's objects"},
		"ready with another token": {[]metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
			"waiting for the manager to use the new token and settings"},
	} {
		t.Run(name, func(t *testing.T) {
			cr := &v1alpha1.ClusterRegistration{}
			cr.Status.Conditions = tc.conditions
			if got := describeProgress(cr); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
