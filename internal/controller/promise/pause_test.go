package promise

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestPause(t *testing.T) {
	claim := func(phase corev1.PersistentVolumeClaimPhase, change ...func(*observed)) client.Object {
		o := seen(change...)
		o.claim.Status.Phase = phase
		return o.claim
	}
	volume := func(change ...func(*observed)) client.Object { return seen(change...).volume }
	for name, tc := range map[string]struct {
		state client.Object
		want  time.Duration
	}{
		"a claim that waits for its promise": {claim(corev1.ClaimPending), 0},
		"a claim that has it":                {claim(corev1.ClaimBound, bound), underWay},
		"a claim that has lost it":           {claim(corev1.ClaimLost, bound), 0},
		"a claim whose disk cannot be made":  {claim(corev1.ClaimBound, placed, problem("ProvisioningFailed")), 0},
		"a claim whose disk is gone":         {claim(corev1.ClaimBound, fulfilled, problem(v1alpha1.ReasonVolumeLost)), 0},
		"a promise":                          {volume(bound), underWay},
		"a promise that a member has":        {volume(placed), underWay},
		"a promise that is kept":             {volume(fulfilled), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pause(tc.state); got != tc.want {
				t.Errorf("looked at after %s, want %s", got, tc.want)
			}
		})
	}
}
