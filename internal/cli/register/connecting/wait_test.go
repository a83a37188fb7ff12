package connecting

import (
	"io"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/register/memberpart"
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
		"unauthorized, before the settling time ends: waits": {reason: v1alpha1.ReasonUnauthorized, lasts: memberpart.Settling - time.Second},
		"unauthorized, after the settling time: fails":       {reason: v1alpha1.ReasonUnauthorized, lasts: memberpart.Settling, end: true},
		"forbidden, before the settling time ends: waits":    {reason: v1alpha1.ReasonForbidden, before: before, lasts: insisting},
		"forbidden, after the settling time: fails":          {reason: v1alpha1.ReasonForbidden, before: before, lasts: memberpart.Settling, end: true},
		"unreachable: waits":                                 {reason: v1alpha1.ReasonUnreachable, lasts: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			env := command.NewEnv(genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}, clock)
			w := Wait{Env: env, First: c.before == nil}
			cr := &v1alpha1.ClusterRegistration{}
			cr.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionFalse, Reason: c.reason}}
			_, err := w.look(cr)
			if c.lasts > 0 {
				if err != nil {
					t.Fatalf("got error %v immediately, want none yet", err)
				}
				clock.Step(c.lasts)
				_, err = w.look(cr)
			}
			if (err != nil) != c.end {
				t.Errorf("got error %v, want an error: %t", err, c.end)
			}
		})
	}
}
