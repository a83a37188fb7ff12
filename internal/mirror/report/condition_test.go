package report

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

func TestPushedConditionReplacesTheLeafUID(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		leaf        types.UID
		want        map[string]string
	}{
		"the first leaf":                         {leaf: "leaf-1", want: map[string]string{v1alpha1.AnnotationLeafUID: "leaf-1"}},
		"no leaf":                                {},
		"another leaf than the manifest's":       {annotations: map[string]string{v1alpha1.AnnotationLeafUID: "leaf-0"}, leaf: "leaf-1", want: map[string]string{v1alpha1.AnnotationLeafUID: "leaf-1"}},
		"no leaf, although the manifest has one": {annotations: map[string]string{v1alpha1.AnnotationLeafUID: "leaf-0"}, want: map[string]string{v1alpha1.AnnotationLeafUID: ""}},
	} {
		t.Run(name, func(t *testing.T) {
			root := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Annotations: tc.annotations}}
			got := PushedApplyBody(root, mirror.Reporter{ClusterID: "id38"}, corev1.ConditionFalse, "R", "m", tc.leaf, time.Time{}).GetAnnotations()
			want := map[string]string{v1alpha1.AnnotationReportedBy: "id38"}
			maps.Copy(want, tc.want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("annotations applied (-want +got):\n%s", diff)
			}
		})
	}
}

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
			if body := ClaimProblemApplyBody(tc.root, "x", tc.problem, now); body != nil {
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
