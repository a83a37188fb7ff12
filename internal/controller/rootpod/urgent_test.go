package rootpod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Changes that cause a Pod to be pushed, deleted or finished are urgent.
func TestAdvances(t *testing.T) {
	pod := func(changes ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	nominated := func(p *corev1.Pod) { p.Status.NominatedNodeName = "node" }
	bound := func(p *corev1.Pod) { p.Spec.NodeName = "node" }
	pushed := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue}}
	}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"the Pod is nominated":                 {pod(), pod(nominated), true},
		"the Pod is bound":                     {pod(nominated), pod(nominated, bound), true},
		"the Pod is bound after an early push": {pod(pushed, nominated), pod(pushed, nominated, bound), false},
		"the Pod is deleted":                   {pod(pushed, bound), pod(pushed, bound, deleted), true},
		"the Pod has finished":                 {pod(pushed, bound, deleted), pod(pushed, bound, deleted, ended), true},
		"the Pod's labels change":              {pod(pushed, bound), pod(pushed, bound, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "x"} }), false},
		"a condition reports that the Pod waits": {pod(nominated), pod(nominated, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionFalse}}
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podChangeUrgent(t.Context(), tc.before, tc.after); got != tc.want {
				t.Errorf("urgent: %t", got)
			}
		})
	}
}
