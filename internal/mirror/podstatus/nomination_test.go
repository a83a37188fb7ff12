package podstatus

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNominationLost(t *testing.T) {
	pod := func(node string, status corev1.ConditionStatus, reason string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Status.NominatedNodeName = node
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status, Reason: reason}}
		return p
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"the last attempt failed":                        {pod("", corev1.ConditionFalse, corev1.PodReasonSchedulerError), true},
		"the last attempt failed, nominated again":       {pod("node", corev1.ConditionFalse, corev1.PodReasonSchedulerError), false},
		"no scheduler has attempted to schedule the Pod": {&corev1.Pod{}, false},
		"no node is suitable":                            {pod("", corev1.ConditionFalse, corev1.PodReasonUnschedulable), false},
		"the Pod is scheduled":                           {pod("", corev1.ConditionTrue, corev1.PodReasonSchedulerError), false},
	} {
		if got := NominationLost(tc.pod); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
