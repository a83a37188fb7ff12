package podstatus

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// These are the values that a kubelet reports for containers whose end it has not observed
// (pkg/kubelet/status/status_manager.go, TerminatePod).
const (
	messageContainerStatusUnknown = "The container could not be located when the pod was terminated"
	exitCodeUnknown               = 137
)

// FailedPodStatus returns the final status of a root Pod whose leaf was deleted or never admitted. The phase
// is Failed. Containers whose end was not observed are terminated with exit code 137, as a kubelet
// reports them. Other fields are unchanged. A Pod that has ended keeps its final status.
//
// Changed conditions have no transition time yet: see WithTransitionTimes.
func FailedPodStatus(root *corev1.Pod, reason, message string) corev1.PodStatus {
	target := FindPodCondition(root.Status.Conditions, corev1.DisruptionTarget)
	var also []corev1.PodCondition
	if target != nil {
		// If the condition came from the leaf, an apply without it would remove it.
		also = append(also, *target)
	}
	status := ownedPodStatus(root, also)
	if IsPodFinished(root) {
		return status
	}
	status.Phase, status.Reason, status.Message = corev1.PodFailed, reason, message
	status.ObservedGeneration = root.Generation

	initialized := FindPodCondition(status.Conditions, corev1.PodInitialized)
	started := initialized != nil && initialized.Status == corev1.ConditionTrue
	terminateContainers(status.InitContainerStatuses, false)
	terminateContainers(status.ContainerStatuses, started)
	for _, t := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		status.Conditions = setConditionFalse(status.Conditions, t, root.Generation)
	}
	for i := range status.Conditions {
		status.Conditions[i].LastProbeTime = metav1.Time{}
	}
	return status
}

// terminateContainers terminates the statuses of running containers and, if all is set, of waiting
// ones, because a Pod that was initialized may have started them.
func terminateContainers(statuses []corev1.ContainerStatus, all bool) {
	for i := range statuses {
		s := &statuses[i]
		if s.State.Running == nil && (!all || s.State.Terminated != nil) {
			continue
		}
		terminated := &corev1.ContainerStateTerminated{
			Reason:      v1alpha1.ReasonContainerStatusUnknown,
			Message:     messageContainerStatusUnknown,
			ExitCode:    exitCodeUnknown,
			ContainerID: s.ContainerID,
		}
		if s.State.Running != nil {
			terminated.StartedAt = s.State.Running.StartedAt
		}
		s.State = corev1.ContainerState{Terminated: terminated}
		s.Ready, s.Started = false, new(bool)
	}
}

func setConditionFalse(conditions []corev1.PodCondition, t corev1.PodConditionType, generation int64) []corev1.PodCondition {
	c := FindPodCondition(conditions, t)
	if c == nil {
		conditions = append(conditions, corev1.PodCondition{Type: t})
		c = &conditions[len(conditions)-1]
	}
	if c.Status != corev1.ConditionFalse {
		c.LastTransitionTime = metav1.Time{}
	}
	c.Status, c.Reason, c.Message = corev1.ConditionFalse, v1alpha1.ReasonPodFailed, ""
	c.ObservedGeneration = generation
	return conditions
}

// WithTransitionTimes returns want with now as the transition time of every condition without one. Use it for
// the write, not for the comparison with the root.
func WithTransitionTimes(want corev1.PodStatus, now metav1.Time) corev1.PodStatus {
	want = *want.DeepCopy()
	for i := range want.Conditions {
		if c := &want.Conditions[i]; c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = now
		}
	}
	return want
}
