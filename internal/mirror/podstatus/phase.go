package podstatus

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// Finished reports whether a Pod has succeeded or failed: its containers do not run and never
// will again.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Pushed returns the status of a root Pod's Pushed condition, or "".
func Pushed(root *corev1.Pod) corev1.ConditionStatus {
	if c := Condition(root.Status.Conditions, v1alpha1.PodPushed); c != nil {
		return c.Status
	}
	return ""
}

// KeptOut reports whether Xylem does not push a Pod, regardless of its node: a Pod of a DaemonSet,
// unless the DaemonSet adopted it after it was pushed.
func KeptOut(pod *corev1.Pod) bool {
	return podspec.IsDaemonSetPod(pod) && Pushed(pod) != corev1.ConditionTrue
}
