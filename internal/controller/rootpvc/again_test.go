package rootpvc

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/observe"
)

// A root is observed again without an event if its report depends on objects whose events do not enqueue
// it.
func TestObservedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		places volume.Placement
		want   time.Duration
	}{
		"events enqueue it":                          {},
		"another member may have its leaf claim":     {volume.Placement{Counterparts: proof.Counterparts{Unchecked: []string{"cluster39"}}}, counterpartCheckInterval},
		"its host PV's claimRef names another claim": {volume.Placement{Diverted: &corev1.PersistentVolume{}}, counterpartCheckInterval},
		"the member's provisioner is silent so far":  {volume.Placement{Attempt: volume.Attempt{CheckSilenceIn: time.Minute}}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{reports: newReporter(&member.Link{})}
			o := observe.Claim{Root: &corev1.PersistentVolumeClaim{}, Observed: &volume.Observed{Placement: &tc.places}}
			if got := r.requeueDelay(o); got != tc.want {
				t.Errorf("observed again after %s, want %s", got, tc.want)
			}
		})
	}
}
