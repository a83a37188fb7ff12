package report

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

// ClaimProblemApplyBody returns the body of a server-side apply that reports a problem as a condition of a
// root claim, or that removes the condition if problem is nil. It returns nil if the claim's
// condition is current. See ClaimConditionApplyBody for the transition time.
func ClaimProblemApplyBody(root *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType, problem *mirror.Refusal, now time.Time) *unstructured.Unstructured {
	if problem != nil {
		return ClaimConditionApplyBody(root, kind, corev1.ConditionFalse, problem.Reason, problem.Message, now)
	}
	if findClaimCondition(root, kind) == nil {
		return nil
	}
	return fields.StatusApplyBody("PersistentVolumeClaim", root, map[string]any{})
}

// PlacedApplyBody is ClaimProblemApplyBody for the Placed condition. It also records the member that the
// condition refers to.
func PlacedApplyBody(root *corev1.PersistentVolumeClaim, by mirror.Reporter, problem *mirror.Refusal, now time.Time) *unstructured.Unstructured {
	shown := ClaimProblemApplyBody(root, v1alpha1.ClaimPlaced, problem, now)
	switch {
	case problem == nil:
		return shown
	case shown != nil:
		return by.StampReporter(shown)
	case mirror.ReporterOfRoot(root) == by:
		return nil
	}
	return by.StampReporter(claimConditionBody(root, *findClaimCondition(root, v1alpha1.ClaimPlaced)))
}

// ClaimConditionApplyBody returns the body of a server-side apply of a root claim's condition, or nil if the
// condition is current. The transition time changes only if the status changes or the claim waits
// for something else, so another problem of the same kind does not restart a member's timeout.
func ClaimConditionApplyBody(root *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) *unstructured.Unstructured {
	has := findClaimCondition(root, kind)
	if has != nil && has.Status == status && has.Reason == reason && has.Message == message {
		return nil
	}
	if has == nil || has.Status != status || conditionWaitsFor(has.Reason) != conditionWaitsFor(reason) {
		has = &corev1.PersistentVolumeClaimCondition{LastTransitionTime: metav1.NewTime(now)}
	}
	return claimConditionBody(root, corev1.PersistentVolumeClaimCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: has.LastTransitionTime,
	})
}

func claimConditionBody(root *corev1.PersistentVolumeClaim, c corev1.PersistentVolumeClaimCondition) *unstructured.Unstructured {
	since := c.LastTransitionTime.UTC().Format(time.RFC3339)
	return fields.StatusApplyBody("PersistentVolumeClaim", root, map[string]any{"conditions": []any{map[string]any{
		"type": string(c.Type), "status": string(c.Status), "reason": c.Reason, "message": c.Message,
		"lastProbeTime": since, "lastTransitionTime": since, // kubectl prints both
	}}})
}

// conditionWaitsFor returns what a condition with the given reason waits for: a member that fails the claim,
// an away member, or nothing.
func conditionWaitsFor(reason string) string {
	switch {
	case ReasonFailsClaim(reason):
		return "a member that fails"
	case reason == v1alpha1.ReasonMemberAway:
		return reason
	}
	return ""
}

// findClaimCondition returns a claim's condition of the given type, or nil.
func findClaimCondition(claim *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType) *corev1.PersistentVolumeClaimCondition {
	for i := range claim.Status.Conditions {
		if claim.Status.Conditions[i].Type == kind {
			return &claim.Status.Conditions[i]
		}
	}
	return nil
}

// ClaimConditionProblem returns the problem that a False condition of a claim reports, or nil.
func ClaimConditionProblem(claim *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType) *mirror.Refusal {
	if c := findClaimCondition(claim, kind); c != nil && c.Status == corev1.ConditionFalse {
		return &mirror.Refusal{Reason: c.Reason, Message: c.Message}
	}
	return nil
}

// PromiseHasDisk reports whether a claim's condition shows that its promise has a disk.
func PromiseHasDisk(claim *corev1.PersistentVolumeClaim) bool {
	c := findClaimCondition(claim, v1alpha1.ClaimPromise)
	return c != nil && c.Status == corev1.ConditionTrue
}

// PushedApplyBody returns the body of a server-side apply of a root Pod's Pushed condition. If the
// condition is True, the body also has the UID of the running leaf. Otherwise, it replaces the UID in
// the annotation: a user may own the annotation, since they created the Pod from an earlier manifest or
// omitted the annotation in a PUT, and then the API server would not remove it.
func PushedApplyBody(root *corev1.Pod, by mirror.Reporter, status corev1.ConditionStatus, reason, message string, leaf types.UID, now time.Time) *unstructured.Unstructured {
	pushed := by.StampReporter(fields.StatusApplyBody("Pod", root, map[string]any{"conditions": []any{map[string]any{
		"type": string(v1alpha1.PodPushed), "status": string(status), "reason": reason, "message": message,
		"lastTransitionTime": now.UTC().Format(time.RFC3339),
	}}}))
	if leaf != "" || root.Annotations[v1alpha1.AnnotationLeafUID] != "" {
		annotations := pushed.GetAnnotations()
		annotations[v1alpha1.AnnotationLeafUID] = string(leaf)
		pushed.SetAnnotations(annotations)
	}
	return pushed
}

// PodConditionApplyBody returns the body of a server-side apply of one condition of a root Pod.
func PodConditionApplyBody(root *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) *unstructured.Unstructured {
	return fields.StatusApplyBody("Pod", root, map[string]any{"conditions": []any{map[string]any{
		"type": string(kind), "status": string(status), "reason": reason, "message": message,
		"lastTransitionTime": now.UTC().Format(time.RFC3339),
	}}})
}

// PodConditionProblem returns the problem that a False condition of a Pod reports, or nil.
func PodConditionProblem(pod *corev1.Pod, kind corev1.PodConditionType) *mirror.Refusal {
	if c := podstatus.FindPodCondition(pod.Status.Conditions, kind); c != nil && c.Status == corev1.ConditionFalse {
		return &mirror.Refusal{Reason: c.Reason, Message: c.Message}
	}
	return nil
}

// PodPlaceableApplyBody returns the body of a server-side apply that reports a problem as the Placeable
// condition of a root Pod, or that removes the condition if problem is nil. It returns nil if the
// Pod's condition is current. The transition time is kept while the reason is the same.
func PodPlaceableApplyBody(root *corev1.Pod, problem *mirror.Refusal, now time.Time) *unstructured.Unstructured {
	has := podstatus.FindPodCondition(root.Status.Conditions, v1alpha1.PodPlaceable)
	switch {
	case problem == nil && has == nil:
		return nil
	case problem == nil:
		return fields.StatusApplyBody("Pod", root, map[string]any{})
	case has != nil && has.Status == corev1.ConditionFalse && has.Reason == problem.Reason && has.Message == problem.Message:
		return nil
	}
	since := now
	if has != nil && has.Reason == problem.Reason {
		since = has.LastTransitionTime.Time
	}
	shown := map[string]any{
		"type": string(v1alpha1.PodPlaceable), "status": string(corev1.ConditionFalse), "reason": problem.Reason, "message": problem.Message,
		"lastProbeTime": now.UTC().Format(time.RFC3339), "lastTransitionTime": since.UTC().Format(time.RFC3339),
	}
	return fields.StatusApplyBody("Pod", root, map[string]any{"conditions": []any{shown}})
}

// Attached returns a claim's Attached condition, or nil.
func Attached(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimCondition {
	return findClaimCondition(claim, v1alpha1.ClaimAttached)
}

// AttachedCondition is the condition Attached that a root claim should have. Without a status, the claim
// should not have the condition.
type AttachedCondition struct {
	Status          corev1.ConditionStatus
	Reason, Message string
}

// ApplyBody returns the body of a server-side apply that sets or removes the condition, or nil if it is
// current.
func (c AttachedCondition) ApplyBody(root *corev1.PersistentVolumeClaim, now time.Time) *unstructured.Unstructured {
	if c.Status == "" {
		return ClaimProblemApplyBody(root, v1alpha1.ClaimAttached, nil, now)
	}
	return ClaimConditionApplyBody(root, v1alpha1.ClaimAttached, c.Status, c.Reason, c.Message, now)
}

// AttachedConditionValue returns a claim's Attached condition as a value for route.PartChanged. The value is empty if
// the claim lacks the condition.
func AttachedConditionValue(claim *corev1.PersistentVolumeClaim) [3]string {
	c := Attached(claim)
	if c == nil {
		return [3]string{}
	}
	return [3]string{string(c.Status), c.Reason, c.Message}
}

// ClusterGoneRefusal reports that a claim's volume is in a member that was deregistered.
func ClusterGoneRefusal(cr *v1alpha1.ClusterRegistration) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonClusterGone, "member %q, which has the claim's volume, was deregistered: the cluster keeps the data. To use the volume again, register the cluster with ID %q again, under any name", cr.Name, cr.Status.ClusterID)
}
