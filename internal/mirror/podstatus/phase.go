package podstatus

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// IsPodFinished reports whether a Pod has succeeded or failed, so that its containers will never run
// again.
func IsPodFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// OnlyFinalizersRemain reports whether a finished Pod was deleted and only finalizers keep it. Without
// them, the API server would have removed it: as a kubelet, Xylem has completed the deletion.
func OnlyFinalizersRemain(pod *corev1.Pod) bool {
	return IsPodFinished(pod) && pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 && len(pod.Finalizers) > 0
}

// PushedStatus returns the status of a root Pod's Pushed condition, or "".
func PushedStatus(root *corev1.Pod) corev1.ConditionStatus {
	if c := FindPodCondition(root.Status.Conditions, v1alpha1.PodPushed); c != nil {
		return c.Status
	}
	return ""
}

// RecordedLeafUID returns the UID of the leaf Pod that the root's status records, or "". It ignores the
// annotation of a Pod without the condition, because a user may have created that Pod from the
// manifest of an earlier one.
func RecordedLeafUID(root *corev1.Pod) types.UID {
	if PushedStatus(root) == "" {
		return ""
	}
	return types.UID(root.Annotations[v1alpha1.AnnotationLeafUID])
}

// HadLeafPod reports whether a leaf Pod runs or ran for the root. Such a root must not get another
// leaf, even if its condition is False now.
func HadLeafPod(root *corev1.Pod) bool {
	return PushedStatus(root) == corev1.ConditionTrue || RecordedLeafUID(root) != ""
}

// IsKeptFromMembers reports whether Xylem does not push a Pod, regardless of its node, because it belongs to
// a DaemonSet. A Pod that a DaemonSet adopted after the push does not count.
func IsKeptFromMembers(pod *corev1.Pod) bool {
	return podspec.IsDaemonSetPod(pod) && PushedStatus(pod) != corev1.ConditionTrue
}
