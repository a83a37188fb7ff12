package mirror

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ClaimCondition is the body of a server-side apply that shows a problem as a
// condition of a root claim's status, or, without one, takes the condition off;
// nil if the claim shows that already. The condition keeps the time since which
// it has been there.
func ClaimCondition(root *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType, problem *Refusal, now time.Time) *unstructured.Unstructured {
	var has *corev1.PersistentVolumeClaimCondition
	for i := range root.Status.Conditions {
		if root.Status.Conditions[i].Type == kind {
			has = &root.Status.Conditions[i]
		}
	}
	switch {
	case has == nil && problem == nil:
		return nil
	case problem == nil:
		return statusApply("PersistentVolumeClaim", root, map[string]any{})
	case has == nil:
		has = &corev1.PersistentVolumeClaimCondition{LastTransitionTime: metav1.NewTime(now)}
	case has.Status == corev1.ConditionFalse && has.Reason == problem.Reason && has.Message == problem.Message:
		return nil
	}
	since := has.LastTransitionTime.UTC().Format(time.RFC3339)
	return statusApply("PersistentVolumeClaim", root, map[string]any{"conditions": []any{map[string]any{
		"type": string(kind), "status": string(corev1.ConditionFalse), "reason": problem.Reason, "message": problem.Message,
		"lastProbeTime": since, "lastTransitionTime": since, // kubectl prints both
	}}})
}

// PodCondition is the body of a server-side apply of one condition of a root
// Pod's status.
func PodCondition(root *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) *unstructured.Unstructured {
	return statusApply("Pod", root, map[string]any{"conditions": []any{map[string]any{
		"type": string(kind), "status": string(status), "reason": reason, "message": message,
		"lastTransitionTime": now.UTC().Format(time.RFC3339),
	}}})
}
