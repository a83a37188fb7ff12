package podstatus

import (
	corev1 "k8s.io/api/core/v1"
)

// NominationLost reports whether the scheduler may be about to bind the Pod to a node without
// showing it in nominatedNodeName. When an attempt fails, for example because somebody changed a
// claim at the same time, the scheduler clears the nomination. If the API server is slow, this write
// may arrive after the next attempt, which has read the old nomination and therefore has not
// written a new one (observed with Kubernetes 1.36.3 and 1.37.2). The result is also true in the
// seconds between a failed attempt and the next one.
func NominationLost(pod *corev1.Pod) bool {
	scheduled := FindPodCondition(pod.Status.Conditions, corev1.PodScheduled)
	return pod.Status.NominatedNodeName == "" && scheduled != nil &&
		scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonSchedulerError
}
