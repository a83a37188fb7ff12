package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

func TestClaimCondition(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := since.Add(time.Hour)
	claim := func(conditions ...corev1.PersistentVolumeClaimCondition) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u"},
			Status:     corev1.PersistentVolumeClaimStatus{Conditions: conditions},
		}
	}
	shown := corev1.PersistentVolumeClaimCondition{Type: "x", Status: corev1.ConditionFalse, Reason: "R", Message: "m", LastTransitionTime: metav1.NewTime(since)}
	fails := corev1.PersistentVolumeClaimCondition{Type: "x", Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonProvisioningFailed, Message: "m", LastTransitionTime: metav1.NewTime(since)}
	other := corev1.PersistentVolumeClaimCondition{Type: "y", Status: corev1.ConditionTrue}
	condition := func(reason, message, at string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "x", "status": "False", "reason": reason, "message": message, "lastProbeTime": at, "lastTransitionTime": at}}}
	}
	for name, tc := range map[string]struct {
		root    *corev1.PersistentVolumeClaim
		problem *mirror.Refusal
		want    map[string]any // nil if no write is needed
	}{
		"no problem":                     {root: claim(other)},
		"a problem":                      {root: claim(other), problem: &mirror.Refusal{Reason: "R", Message: "m"}, want: condition("R", "m", "2026-03-01T13:00:00Z")},
		"the same problem":               {root: claim(shown), problem: &mirror.Refusal{Reason: "R", Message: "m"}},
		"another problem":                {root: claim(shown), problem: &mirror.Refusal{Reason: "S", Message: "n"}, want: condition("S", "n", "2026-03-01T12:00:00Z")},
		"the member now fails the claim": {root: claim(shown), problem: &mirror.Refusal{Reason: v1alpha1.ReasonOutOfSpace, Message: "n"}, want: condition(v1alpha1.ReasonOutOfSpace, "n", "2026-03-01T13:00:00Z")},
		"the member fails the claim for another reason": {root: claim(fails), problem: &mirror.Refusal{Reason: v1alpha1.ReasonOutOfSpace, Message: "n"}, want: condition(v1alpha1.ReasonOutOfSpace, "n", "2026-03-01T12:00:00Z")},
		"the member is away":                            {root: claim(shown), problem: &mirror.Refusal{Reason: v1alpha1.ReasonMemberAway, Message: "n"}, want: condition(v1alpha1.ReasonMemberAway, "n", "2026-03-01T13:00:00Z")},
		"the problem is resolved":                       {root: claim(shown, other), want: map[string]any{}},
		"the condition was True":                        {root: claim(corev1.PersistentVolumeClaimCondition{Type: "x", Status: corev1.ConditionTrue, Reason: "R", Message: "m", LastTransitionTime: metav1.NewTime(since)}), problem: &mirror.Refusal{Reason: "R", Message: "m"}, want: condition("R", "m", "2026-03-01T13:00:00Z")},
	} {
		t.Run(name, func(t *testing.T) {
			var got map[string]any
			if body := ClaimCondition(tc.root, "x", tc.problem, now); body != nil {
				if body.GetUID() != "u" {
					t.Errorf("the apply has UID %q, want u", body.GetUID())
				}
				got, _ = body.Object["status"].(map[string]any)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("status applied (-want +got):\n%s", diff)
			}
		})
	}
}
