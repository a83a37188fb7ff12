package leafpod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/xylem-io/xylem/internal/member"
)

// Containers that a member added are reported once: when the Pod's own containers finish, and the added
// ones keep the Pod running.
func TestContainersAdded(t *testing.T) {
	status := func(name string, exit *int32) corev1.ContainerStatus {
		if exit == nil {
			return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		}
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: *exit}}}
	}
	runs := func(name string) corev1.ContainerStatus { return status(name, nil) }
	ends := func(name string, code int32) corev1.ContainerStatus { return status(name, &code) }
	own, proxy := runs("main"), runs("proxy")
	for name, tc := range map[string]struct {
		policy        corev1.RestartPolicy
		before, after []corev1.ContainerStatus
		want          bool
	}{
		"the Pod's container finishes":                    {corev1.RestartPolicyOnFailure, []corev1.ContainerStatus{own, proxy}, []corev1.ContainerStatus{ends("main", 0), proxy}, true},
		"it fails, and does not restart":                  {corev1.RestartPolicyNever, []corev1.ContainerStatus{own, proxy}, []corev1.ContainerStatus{ends("main", 1), proxy}, true},
		"it fails, and restarts":                          {corev1.RestartPolicyOnFailure, []corev1.ContainerStatus{own, proxy}, []corev1.ContainerStatus{ends("main", 1), proxy}, false},
		"it always restarts":                              {corev1.RestartPolicyAlways, []corev1.ContainerStatus{own, proxy}, []corev1.ContainerStatus{ends("main", 0), proxy}, false},
		"it had finished before":                          {corev1.RestartPolicyOnFailure, []corev1.ContainerStatus{ends("main", 0)}, []corev1.ContainerStatus{ends("main", 0), proxy}, false},
		"the member added no container":                   {corev1.RestartPolicyOnFailure, []corev1.ContainerStatus{own}, []corev1.ContainerStatus{ends("main", 0)}, false},
		"the added container has finished, too":           {corev1.RestartPolicyOnFailure, []corev1.ContainerStatus{own, proxy}, []corev1.ContainerStatus{ends("main", 0), ends("proxy", 0)}, false},
		"the member does not report the Pod's containers": {corev1.RestartPolicyOnFailure, nil, []corev1.ContainerStatus{proxy}, false},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			r := &reconciler{Link: &member.Link{Member: here, Recorder: recorder}}
			root := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: tc.policy, Containers: []corev1.Container{{Name: "main"}}}}
			root.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: tc.before}
			leaf := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: tc.after}}
			r.eventAdded(observed{root: root, leaf: leaf}, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: tc.after})
			if got := len(recorder.Events) == 1; got != tc.want {
				t.Errorf("reported: %t, want %t", got, tc.want)
			}
		})
	}
}
