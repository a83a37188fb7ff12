package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestTimelineShowsTheSceneInOrder(t *testing.T) {
	var out strings.Builder
	line := &timeline{out: &console{out: &out}, columns: []string{"host", "one"}}
	zero := time.Unix(1000, 0)
	line.record(zero, object{0, kindClaim, "shown", "early"}, change{text: "before the scene"})
	line.begin("shown", true)
	out.Reset()
	line.record(zero.Add(2*time.Second), object{1, kindPod, "shown", "p"}, change{event: running, text: "second"})
	line.record(zero.Add(time.Second), object{0, kindClaim, "shown", "c"}, change{text: "first"}, change{text: "detail", minor: true})
	line.record(zero, object{0, kindClaim, "shown", "c"}, change{text: "detail", minor: true})
	line.record(zero.Add(time.Second), object{0, kindClaim, "hidden", "c"}, change{text: "elsewhere"})
	line.end()
	want := " +1.00s │ first                                    │\n +2.00s │                                          │ second\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if at, ok := line.when(zero, object{1, kindPod, "shown", ""}, running); !ok || !at.Equal(zero.Add(2*time.Second)) {
		t.Errorf("when() returned %v and %t for the running Pod, want two seconds after zero", at, ok)
	}
	if _, ok := line.when(zero.Add(time.Minute), object{1, kindPod, "shown", ""}, running); ok {
		t.Error("when() returned an event before the given time")
	}
}

func texts(changes []change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.text)
	}
	return out
}

func TestClaimChanges(t *testing.T) {
	claim := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{}}}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		c.Status.Phase = corev1.ClaimPending
		if change != nil {
			change(c)
		}
		return c
	}
	capacity := func(size string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Status.Phase = corev1.ClaimBound
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		}
	}
	tests := map[string]struct {
		old, now *corev1.PersistentVolumeClaim
		want     []string
	}{
		"new":       {nil, claim(nil), []string{"claim c created"}},
		"unchanged": {claim(nil), claim(nil), nil},
		"selected": {claim(nil), claim(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[annotationSelectedNode] = "n"
		}), []string{"claim c selected-node n"}},
		"placed": {claim(nil), claim(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[v1alpha1.AnnotationPlacedIn] = "id-1"
		}), []string{"claim c placed-in one"}},
		"no longer placed": {claim(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[v1alpha1.AnnotationPlacedIn] = "id-2"
		}), claim(nil), []string{"claim c placed-in id-2 removed"}},
		"bound":  {claim(nil), claim(capacity("1Gi")), []string{"claim c BOUND"}},
		"grown":  {claim(capacity("1Gi")), claim(capacity("2Gi")), []string{"claim c has 2Gi"}},
		"unable": {claim(nil), claim(blockedClaim), []string{"claim c cannot be pushed: no class x"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, texts(claimChanges(test.old, test.now, map[string]string{"id-1": "one"}, true))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func blockedClaim(c *corev1.PersistentVolumeClaim) {
	c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
		{Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Message: "no class x"},
	}
}

func TestPodChanges(t *testing.T) {
	pod := func(node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "nginx-5677468b6c-ns9k2", Labels: map[string]string{"pod-template-hash": "5677468b6c"}},
			Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
		}
	}
	tests := map[string]struct {
		old, now *corev1.Pod
		want     []string
	}{
		"new":       {nil, pod("", corev1.PodPending), []string{"Pod nginx…ns9k2 created"}},
		"bound":     {pod("", corev1.PodPending), pod("n", corev1.PodPending), []string{"Pod nginx…ns9k2 on n"}},
		"running":   {pod("n", corev1.PodPending), pod("n", corev1.PodRunning), []string{"Pod nginx…ns9k2 RUNNING"}},
		"unchanged": {pod("n", corev1.PodRunning), pod("n", corev1.PodRunning), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, texts(podChanges(test.old, test.now))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
