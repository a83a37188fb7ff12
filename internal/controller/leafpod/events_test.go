package leafpod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/news"
)

// Containers that a member added are reported once the Pod's own containers have finished, if the added
// ones have not.
func TestContainersAdded(t *testing.T) {
	runs := func(name string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	}
	waits := func(name string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
	}
	ends := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	for name, tc := range map[string]struct {
		policy     corev1.RestartPolicy
		phase      corev1.PodPhase
		containers []corev1.ContainerStatus
		want       bool
	}{
		"the Pod's container has finished":                {corev1.RestartPolicyOnFailure, corev1.PodRunning, []corev1.ContainerStatus{ends("main", 0), runs("proxy")}, true},
		"it failed, and does not restart":                 {corev1.RestartPolicyNever, corev1.PodRunning, []corev1.ContainerStatus{ends("main", 1), runs("proxy")}, true},
		"the added container waits":                       {corev1.RestartPolicyOnFailure, corev1.PodPending, []corev1.ContainerStatus{ends("main", 0), waits("proxy")}, true},
		"it failed, and restarts":                         {corev1.RestartPolicyOnFailure, corev1.PodRunning, []corev1.ContainerStatus{ends("main", 1), runs("proxy")}, false},
		"it always restarts":                              {corev1.RestartPolicyAlways, corev1.PodRunning, []corev1.ContainerStatus{ends("main", 0), runs("proxy")}, false},
		"it still runs":                                   {corev1.RestartPolicyOnFailure, corev1.PodRunning, []corev1.ContainerStatus{runs("main"), runs("proxy")}, false},
		"the member added no container":                   {corev1.RestartPolicyOnFailure, corev1.PodRunning, []corev1.ContainerStatus{ends("main", 0)}, false},
		"the added container has finished, too":           {corev1.RestartPolicyOnFailure, corev1.PodRunning, []corev1.ContainerStatus{ends("main", 0), ends("proxy", 0)}, false},
		"the Pod has finished":                            {corev1.RestartPolicyOnFailure, corev1.PodSucceeded, []corev1.ContainerStatus{ends("main", 0), runs("proxy")}, false},
		"the member does not report the Pod's containers": {corev1.RestartPolicyOnFailure, corev1.PodRunning, []corev1.ContainerStatus{runs("proxy")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(2)
			r := &reconciler{news: news.New(clock.RealClock{}), Link: &member.Link{Member: here, Recorder: recorder}}
			root := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: tc.policy, Containers: []corev1.Container{{Name: "main"}}}}
			leaf := &corev1.Pod{Status: corev1.PodStatus{Phase: tc.phase, ContainerStatuses: tc.containers}}
			for range 2 { // the second time, it is known
				r.emitContainersAdded(observed{root: root, leaf: leaf})
			}
			want := 0
			if tc.want {
				want = 1
			}
			if got := len(recorder.Events); got != want {
				t.Errorf("%d events, want %d", got, want)
			}
		})
	}
}
