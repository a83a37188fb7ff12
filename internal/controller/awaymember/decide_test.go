package awaymember

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/news"
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

// pushed marks the Pod as pushed to the member.
func pushed(o *observed) {
	o.pod.Status.Conditions = append(o.pod.Status.Conditions, corev1.PodCondition{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue})
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		observed observed
		mark     bool
		says     []string // nil if nothing is reported
	}{
		"the member is away, and its Pods are kept": {seen(pushed), true, []string{`member "a"`, "2026-11-20T20:49:00Z", "no response", "may still be running", "kept until the member is connected again"}},
		"the member is away, and its Pods are evicted": {seen(func(o *observed) { o.node.Status.Conditions[1].Status = corev1.ConditionFalse }), true, []string{
			`member "a"`, "evicts the Pod when its tolerations of the node's taints expire"}},
		"the node lifecycle controller set the Pod to not ready": {seen(ready(corev1.ConditionFalse, "")), true, []string{`member "a"`}},
		"away_pod has already set the condition":                 {seen(ready(corev1.ConditionFalse, v1alpha1.ReasonMemberAway)), false, nil},
		"the Pod was not ready before":                           {seen(pushed, ready(corev1.ConditionFalse, "ContainersNotReady")), false, []string{`member "a"`, "no response", "may still be running"}},
		"the Pod never started":                                  {seen(func(o *observed) { o.pod.Status.Conditions = nil }), false, []string{`member "a"`, "no response. The Pod is kept until the member is connected again"}},
		"Xylem does not push the Pod": {seen(func(o *observed) {
			o.pod.Status.Conditions = []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonDaemonSet}}
		}), false, nil},
		"the Pod has finished":     {seen(func(o *observed) { o.pod.Status.Phase = corev1.PodSucceeded }), false, nil},
		"the Pod is being deleted": {seen(func(o *observed) { o.pod.DeletionTimestamp = &metav1.Time{Time: since} }), false, nil},
		"the member is not away":   {seen(func(o *observed) { o.node.Status.Conditions[0].Status = corev1.ConditionFalse }), false, nil},
		"the member is connected again, and leaf_pod writes the condition": {seen(func(o *observed) { o.memberConnected = true }), false, nil},
		"the Pod is on a host node":                                        {seen(func(o *observed) { o.node.Labels = nil }), false, nil},
		"the node does not exist":                                          {seen(func(o *observed) { o.node = nil }), false, nil},
		"the Pod does not exist":                                           {seen(func(o *observed) { o.pod = nil }), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := decideAwayReport(tc.observed)
			got := d.message
			if (got == "") != (tc.says == nil) || d.markNotReady != tc.mark {
				t.Fatalf("message is %q, mark is %t, want %q and %t", got, d.markNotReady, tc.says, tc.mark)
			}
			for _, part := range tc.says {
				if !strings.Contains(got, part) {
					t.Errorf("message is %q, want it to contain %q", got, part)
				}
			}
		})
	}
}

// TestEvents checks that a Pod that cannot be marked gets one event for each outage of its member,
// and another one before the host deletes it.
func TestEvents(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	clock := clocktesting.NewFakePassiveClock(since)
	r := &PodReconciler{Recorder: recorder, news: news.New(clock)}
	first := seen(ready(corev1.ConditionFalse, "ContainersNotReady"))
	later := seen(ready(corev1.ConditionFalse, "ContainersNotReady"), func(o *observed) {
		o.node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(since.Add(time.Hour))
	})
	another := seen(ready(corev1.ConditionFalse, "ContainersNotReady"), func(o *observed) { o.pod.UID = "another" })
	for _, o := range []observed{first, first, later, later, another} {
		r.emitAwayWarning(o, "away")
	}
	if got := len(recorder.Events); got != 3 {
		t.Errorf("got %d events, want 3", got)
	}
	clock.SetTime(since.Add(news.RepeatInterval))
	r.emitAwayWarning(another, "away")
	if got := len(recorder.Events); got != 4 {
		t.Errorf("got %d events in a long outage, want 4", got)
	}
}
