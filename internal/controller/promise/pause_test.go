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
	kept := func(o *observed) {
		o.claim.Status.Conditions = append(o.claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: v1alpha1.ClaimPromise, Status: corev1.ConditionTrue})
	}
	classless := func(o *observed) { o.claim.Spec.StorageClassName = nil }
	volume := func(change ...func(*observed)) client.Object { return seen(change...).volume }
	pending, named := claim(corev1.ClaimPending), claim(corev1.ClaimPending, bound)
	has, failed := claim(corev1.ClaimBound, bound), claim(corev1.ClaimBound, placed, problem("ProvisioningFailed"))
	for name, tc := range map[string]struct {
		before, after client.Object
		want          time.Duration
	}{
		"a claim is created":           {nil, pending, 0},
		"a waiting claim changes":      {pending, pending, diskReportDelay},
		"a waiting claim gets a class": {claim(corev1.ClaimPending, classless), pending, 0},
		"a claim is being bound":       {pending, named, diskReportDelay},
		"a claim is bound":             {named, has, diskReportDelay},
		"a claim is placed":            {has, claim(corev1.ClaimBound, placed), diskReportDelay},
		"a claim is lost":              {has, claim(corev1.ClaimLost, bound), 0},
		"a lost claim is bound again":  {claim(corev1.ClaimLost, bound), has, 0},
		"a member reports that it cannot provision a claim's disk":   {has, failed, 0},
		"the problem with a claim's disk is resolved":                {failed, claim(corev1.ClaimBound, placed), 0},
		"a claim that reports a disk is observed for the first time": {nil, claim(corev1.ClaimBound, bound, kept), 0},
		"a claim is deleted":            {has, nil, 0},
		"a promise is created":          {nil, volume(bound), diskReportDelay},
		"a promise is placed":           {volume(bound), volume(placed), diskReportDelay},
		"a promise is fulfilled":        {volume(placed), volume(fulfilled), 0},
		"a promise's disk is destroyed": {volume(fulfilled), volume(bound), 0},
		"a promise is deleted":          {volume(bound), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := claimRequeueDelay(tc.before, tc.after); got != tc.want {
				t.Errorf("pause is %s, want %s", got, tc.want)
			}
		})
	}
}
