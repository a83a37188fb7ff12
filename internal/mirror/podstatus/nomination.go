package podstatus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/wording"
)

// NominationLost reports whether a scheduler that nominates may be about to bind the Pod
// to a node that it does not show. When it has waited for a volume in vain, for ten
// minutes by default, it takes the nomination off; where the API server is slow, that
// write comes after its next attempt has found the old nomination there, and made none of
// its own (seen with Kubernetes 1.36.3). It is also so for the seconds between the two.
// Other causes of a Pod's return, such as that its claim was changed, are a tenant's to
// bring about at any time, and are none of this.
func NominationLost(pod *corev1.Pod) bool {
	return pod.Status.NominatedNodeName == "" && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonSchedulerError &&
			wording.BindingTimedOut(c.Message)
	})
}
