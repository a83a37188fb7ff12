package awaypod

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

var since = time.Date(2026, 11, 20, 20, 49, 0, 0, time.UTC)

func seen(change ...func(*observed)) observed {
	o := observed{
		pod: &corev1.Pod{
			Spec:   corev1.PodSpec{NodeName: "kosmos-a"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		},
		node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "kosmos-a", Labels: map[string]string{
				v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelVirtualNode: "true", v1alpha1.LabelCluster: "a",
			}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: v1alpha1.NodeMemberAway, Status: corev1.ConditionTrue, Message: "no response", LastTransitionTime: metav1.NewTime(since)},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			}},
		},
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

func ready(status corev1.ConditionStatus, reason string) func(*observed) {
	return func(o *observed) {
		o.pod.Status.Conditions[0].Status, o.pod.Status.Conditions[0].Reason = status, reason
	}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		says     []string // nil if no condition is written
	}{
		"the member is away, and its Pods are kept": {seen(), []string{`member "a"`, "2026-11-20T20:49:00Z", "no response", "kept until the member is connected again"}},
		"the member is away, and its Pods are evicted": {seen(func(o *observed) { o.node.Status.Conditions[1].Status = corev1.ConditionFalse }), []string{
			`member "a"`, "evicts the Pod when its tolerations of the node's taints expire"}},
		"the node lifecycle controller set the Pod to not ready":           {seen(ready(corev1.ConditionFalse, "")), []string{`member "a"`}},
		"away_pod has already set the condition":                           {seen(ready(corev1.ConditionFalse, v1alpha1.ReasonMemberAway)), nil},
		"the Pod was not ready before":                                     {seen(ready(corev1.ConditionFalse, "ContainersNotReady")), nil},
		"the Pod never started":                                            {seen(func(o *observed) { o.pod.Status.Conditions = nil }), nil},
		"the Pod has finished":                                             {seen(func(o *observed) { o.pod.Status.Phase = corev1.PodSucceeded }), nil},
		"the Pod is being deleted":                                         {seen(func(o *observed) { o.pod.DeletionTimestamp = &metav1.Time{Time: since} }), nil},
		"the member is not away":                                           {seen(func(o *observed) { o.node.Status.Conditions[0].Status = corev1.ConditionFalse }), nil},
		"the member is connected again, and leaf_pod writes the condition": {seen(func(o *observed) { o.linked = true }), nil},
		"the Pod is on a host node":                                        {seen(func(o *observed) { o.node.Labels = nil }), nil},
		"the node does not exist":                                          {seen(func(o *observed) { o.node = nil }), nil},
		"the Pod does not exist":                                           {seen(func(o *observed) { o.pod = nil }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.observed)
			if (got == "") != (tc.says == nil) {
				t.Fatalf("message is %q, want it to contain %q", got, tc.says)
			}
			for _, part := range tc.says {
				if !strings.Contains(got, part) {
					t.Errorf("message is %q, want it to contain %q", got, part)
				}
			}
		})
	}
}
