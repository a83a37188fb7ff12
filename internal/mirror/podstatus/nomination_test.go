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
		"it waited for a volume in vain":             {pod("", corev1.ConditionFalse, corev1.PodReasonSchedulerError, inVain), true},
		"and is nominated":                           {pod("node", corev1.ConditionFalse, corev1.PodReasonSchedulerError, inVain), false},
		"no scheduler has looked at it":              {&corev1.Pod{}, false},
		"it fits nowhere":                            {pod("", corev1.ConditionFalse, corev1.PodReasonUnschedulable, inVain), false},
		"it is scheduled":                            {pod("", corev1.ConditionTrue, corev1.PodReasonSchedulerError, inVain), false},
		"its claim's node was changed by whomever":   {failed(`provisioning failed for PVC "data"`), false},
		"its claim's node was taken off by whomever": {failed(`selectedNode annotation value "" not set to scheduled node "node"`), false},
	} {
		if got := NominationLost(tc.pod); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
