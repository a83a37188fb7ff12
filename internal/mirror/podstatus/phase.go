package podstatus

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// Finished reports whether a Pod has ended, well or not: its containers run no
// more, and will not again.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Pushed is the status of a root Pod's Pushed condition; empty if it has none.
func Pushed(root *corev1.Pod) corev1.ConditionStatus {
	if c := Condition(root.Status.Conditions, v1alpha1.PodPushed); c != nil {
		return c.Status
	}
	return ""
}

// KeptOut reports whether a Pod is not pushed, wherever it is bound: a DaemonSet's,
// unless it was pushed before a DaemonSet adopted it.
func KeptOut(pod *corev1.Pod) bool {
	return podspec.IsDaemonSetPod(pod) && Pushed(pod) != corev1.ConditionTrue
}
