package pvc

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// A change that never reaches the leaf claim is shown as external-resizer shows one that fails, because
// users' tools observe these fields, not Xylem's condition.
func TestUnappliedChanges(t *testing.T) {
	since := metav1.NewTime(time.Unix(1_800_000_000, 0))
	shown := func(kind corev1.PersistentVolumeClaimConditionType, reason, message string) corev1.PersistentVolumeClaimCondition {
		return corev1.PersistentVolumeClaimCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastProbeTime: since, LastTransitionTime: since}
	}
	const notFound, refused = v1alpha1.ReasonAttributesClassNotFound, v1alpha1.ReasonRefusedByMember
	modifying := shown(corev1.PersistentVolumeClaimVolumeModifyingVolume, "", `Modifying volume to "gold" failed. Waiting for retry.`)
	target := func(status corev1.PersistentVolumeClaimModifyVolumeStatus) *corev1.ModifyVolumeStatus {
		return &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: "gold", Status: status}
	}
	infeasible := corev1.PersistentVolumeClaimStatus{
		ModifyVolumeStatus: target(corev1.PersistentVolumeClaimModifyVolumeInfeasible),
		Conditions:         []corev1.PersistentVolumeClaimCondition{shown(corev1.PersistentVolumeClaimVolumeModifyVolumeError, notFound, "why"), modifying},
	}
	unexpanded := corev1.PersistentVolumeClaimStatus{
		AllocatedResources:        corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		AllocatedResourceStatuses: map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible},
		Conditions:                []corev1.PersistentVolumeClaimCondition{shown(corev1.PersistentVolumeClaimControllerResizeError, refused, "failed to expand pvc with why")},
	}
	rejected := *infeasible.DeepCopy()
	rejected.Conditions[0].Reason = refused
	for name, tc := range map[string]struct {
		reason, class, size string
		hostLacks           bool
		want                corev1.PersistentVolumeClaimStatus
	}{
		"nothing changes":                                    {reason: refused, size: "1Gi"},
		"both changes are applied":                           {class: "gold", size: "2Gi"},
		"the member lacks the class":                         {reason: notFound, class: "gold", size: "1Gi", want: infeasible},
		"both clusters lack the class":                       {reason: notFound, class: "gold", size: "1Gi", hostLacks: true, want: corev1.PersistentVolumeClaimStatus{ModifyVolumeStatus: target(corev1.PersistentVolumeClaimModifyVolumePending)}},
		"the user selects no class again":                    {reason: notFound, size: "1Gi"},
		"the member rejects the expansion":                   {reason: refused, size: "2Gi", want: unexpanded},
		"the member rejects the class":                       {reason: refused, class: "gold", size: "1Gi", want: rejected},
		"the member rejects the expansion, the class is new": {reason: refused, class: "gold", size: "2Gi", want: unexpanded},
		"the claim has another problem":                      {reason: v1alpha1.ReasonVolumeLost, class: "gold", size: "2Gi"},
		"the class is missing, and the expansion is applied": {reason: notFound, class: "gold", size: "2Gi", want: infeasible},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := classed("", "")
			leaf.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			root := leaf.DeepCopy()
			root.Spec.VolumeAttributesClassName = named(tc.class)
			root.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(tc.size)}
			if tc.reason != "" {
				root.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: tc.reason, Message: "why", LastTransitionTime: since}}
			}
			var got corev1.PersistentVolumeClaimStatus
			class, size := UnappliedChanges(root, leaf)
			if size != nil {
				ShowUnexpanded(root, &got, size)
			}
			if class != nil {
				ShowUnmodified(root, &got, class, !tc.hostLacks)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
