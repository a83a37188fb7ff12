package podstatus

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNominationLost(t *testing.T) {
	const inVain = `running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded`
	pod := func(node string, status corev1.ConditionStatus, reason, message string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Status.NominatedNodeName = node
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status, Reason: reason, Message: message}}
		return p
	}
	failed := func(why string) *corev1.Pod {
		return pod("", corev1.ConditionFalse, corev1.PodReasonSchedulerError, `running PreBind plugin "VolumeBinding": binding volumes: `+why)
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"the wait for the Pod's volume timed out":               {pod("", corev1.ConditionFalse, corev1.PodReasonSchedulerError, inVain), true},
		"the wait timed out, nominated again":                   {pod("node", corev1.ConditionFalse, corev1.PodReasonSchedulerError, inVain), false},
		"no scheduler has attempted to schedule the Pod":        {&corev1.Pod{}, false},
		"no node is suitable":                                   {pod("", corev1.ConditionFalse, corev1.PodReasonUnschedulable, inVain), false},
		"the Pod is scheduled":                                  {pod("", corev1.ConditionTrue, corev1.PodReasonSchedulerError, inVain), false},
		"a user changed the selected node of the Pod's claim":   {failed(`provisioning failed for PVC "data"`), false},
		"a user removed the selected node from the Pod's claim": {failed(`selectedNode annotation value "" not set to scheduled node "node"`), false},
	} {
		if got := NominationLost(tc.pod); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
