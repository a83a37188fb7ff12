package podstatus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/wording"
)

// NominationLost reports whether the scheduler may be about to bind the Pod to a node without
// showing it in nominatedNodeName. When it times out waiting for a volume, after ten minutes by
// default, it clears the nomination. If the API server is slow, this write may arrive after the
// next attempt, which has read the old nomination and therefore has not written a new one (observed
// with Kubernetes 1.36.3). The result is also true in the seconds between a normal timeout and the next attempt. It
// is false for other causes of a retry, such as a changed claim, because tenants can trigger those
// at any time.
func NominationLost(pod *corev1.Pod) bool {
	return pod.Status.NominatedNodeName == "" && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonSchedulerError &&
			wording.BindingTimedOut(c.Message)
	})
}
