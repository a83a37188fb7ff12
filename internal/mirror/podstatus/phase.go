package podstatus

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// Finished reports whether a Pod has succeeded or failed, so that its containers will never run
// again.
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

// KeptOut reports whether Xylem does not push a Pod, regardless of its node, because it belongs to
// a DaemonSet. A Pod that a DaemonSet adopted after the push does not count.
func KeptOut(pod *corev1.Pod) bool {
	return podspec.IsDaemonSetPod(pod) && Pushed(pod) != corev1.ConditionTrue
}
