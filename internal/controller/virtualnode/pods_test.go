package virtualnode

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// bound is a host with Pods on the Node.
type bound struct {
	client.Reader
	pods []corev1.Pod
}

func (b bound) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if pods, ok := list.(*corev1.PodList); ok {
		pods.Items = b.pods
	}
	return nil
}

// The Node waits for Pods that may still run, but not for those that only a user's finalizer keeps.
func TestPodsOn(t *testing.T) {
	deletedPod := func(phase corev1.PodPhase, grace int64, finalizers ...string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			DeletionTimestamp: &metav1.Time{Time: start}, DeletionGracePeriodSeconds: &grace, Finalizers: finalizers,
		}, Status: corev1.PodStatus{Phase: phase}}
	}
	daemon := corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "ds", Controller: ptr.To(true)}}}}
	pushed := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: v1alpha1.PodPushed, Status: corev1.ConditionTrue}}}}
	for name, tc := range map[string]struct {
		pod         corev1.Pod
		gone, ended bool
		want        int
	}{
		"a running Pod":     {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, want: 1},
		"a finished Pod":    {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, want: 1},
		"a DaemonSet's Pod": {pod: daemon},
		"finished and deleted, but a finalizer remains, before the link has ended":    {pod: deletedPod(corev1.PodFailed, 0, "example.com/keep"), want: 1},
		"finished and deleted, but a finalizer remains, after the link has ended":     {pod: deletedPod(corev1.PodFailed, 0, "example.com/keep"), ended: true},
		"finished and deleted, but a finalizer remains, and the registration is gone": {pod: deletedPod(corev1.PodFailed, 0, "example.com/keep"), gone: true},
		"finished, and its deletion is not complete":                                  {pod: deletedPod(corev1.PodFailed, 30, "example.com/keep"), gone: true, want: 1},
		"deleted by force, and not finished yet (I6)":                                 {pod: deletedPod(corev1.PodRunning, 0, "example.com/keep"), gone: true, want: 1},
		"no leaf is recorded, before the link has ended (I6)":                         {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, want: 1},
		"no leaf is recorded, and the registration is gone (I6)":                      {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, gone: true, want: 1},
		"no leaf is recorded, after the link has ended":                               {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, ended: true},
		"rejected, after the link has ended":                                          {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, ended: true},
		"with a leaf, after the link has ended":                                       {pod: pushed, ended: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Live: bound{pods: []corev1.Pod{tc.pod}}}
			got, err := r.countPodsOn(t.Context(), "kosmos-cluster38", tc.gone, tc.ended)
			if err != nil || got != tc.want {
				t.Errorf("counted %d Pods (error %v), want %d", got, err, tc.want)
			}
		})
	}
}
