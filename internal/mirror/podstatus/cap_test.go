package podstatus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

// The host's quotas count the larger of a Pod's requests and its reported resources. A member must
// not use up a tenant's quota by reporting resources (I7).
func TestPodResourcesAreCapped(t *testing.T) {
	asks := corev1.ResourceRequirements{Requests: mirrortest.ResourceAmounts("cpu", "1", "memory", "1Gi"), Limits: mirrortest.ResourceAmounts("cpu", "2")}
	for name, tc := range map[string]struct {
		reported, want corev1.ContainerStatus
	}{
		"the requested resources": {
			corev1.ContainerStatus{AllocatedResources: asks.Requests, Resources: &asks},
			corev1.ContainerStatus{AllocatedResources: asks.Requests, Resources: &asks},
		},
		"less than requested, as before a resize": {
			corev1.ContainerStatus{AllocatedResources: mirrortest.ResourceAmounts("cpu", "500m"), Resources: &corev1.ResourceRequirements{Requests: mirrortest.ResourceAmounts("cpu", "500m")}},
			corev1.ContainerStatus{AllocatedResources: mirrortest.ResourceAmounts("cpu", "500m"), Resources: &corev1.ResourceRequirements{Requests: mirrortest.ResourceAmounts("cpu", "500m")}},
		},
		"more than requested, and unrequested resources": {
			corev1.ContainerStatus{
				AllocatedResources: mirrortest.ResourceAmounts("cpu", "1M", "memory", "1Ei", "example.com/gpu", "8"),
				Resources:          &corev1.ResourceRequirements{Requests: mirrortest.ResourceAmounts("cpu", "1M", "memory", "1Ei"), Limits: mirrortest.ResourceAmounts("cpu", "1M", "memory", "1Ei")},
			},
			corev1.ContainerStatus{AllocatedResources: asks.Requests, Resources: &asks},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := mirrortest.NewRootPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: asks}}})
			tc.reported.Name, tc.want.Name = "main", "main"
			leaf := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{tc.reported}}}
			got := TranslatePodStatus(root, leaf, mirrortest.Member)
			if diff := cmp.Diff([]corev1.ContainerStatus{tc.want}, got.ContainerStatuses); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// While the member shrinks a container, the host counts what the root's status shows, as on its own nodes, but
// no more than the tenant had requested.
func TestShrinkingResources(t *testing.T) {
	of := func(cpu string) corev1.ContainerStatus {
		amounts := mirrortest.ResourceAmounts("cpu", cpu)
		return corev1.ContainerStatus{Name: "main", AllocatedResources: amounts, Resources: &corev1.ResourceRequirements{Requests: amounts, Limits: amounts}}
	}
	for name, tc := range map[string]struct{ shown, reported, want corev1.ContainerStatus }{
		"the member has not resized it yet":           {of("4"), of("4"), of("4")},
		"the member resized it":                       {of("4"), of("2"), of("2")},
		"the member reports more than was shown":      {of("4"), of("9"), of("4")},
		"nothing was shown":                           {corev1.ContainerStatus{}, of("4"), of("2")},
		"less was shown":                              {of("1"), of("4"), of("2")},
		"the status shows a resource without request": {corev1.ContainerStatus{Name: "main", AllocatedResources: mirrortest.ResourceAmounts("cpu", "4", "memory", "1Gi")}, corev1.ContainerStatus{Name: "main", AllocatedResources: mirrortest.ResourceAmounts("cpu", "3", "memory", "1Gi")}, corev1.ContainerStatus{Name: "main", AllocatedResources: mirrortest.ResourceAmounts("cpu", "3")}},
	} {
		t.Run(name, func(t *testing.T) {
			asks := mirrortest.ResourceAmounts("cpu", "2")
			sidecar := corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}}
			root := mirrortest.NewRootPod(corev1.PodSpec{Containers: []corev1.Container{sidecar}})
			sidecar.Name = "sidecar"
			root.Spec.InitContainers = []corev1.Container{sidecar}
			leaf := &corev1.Pod{}
			named := func(s corev1.ContainerStatus) []corev1.ContainerStatus {
				s.Name = "sidecar"
				return []corev1.ContainerStatus{s}
			}
			root.Status.ContainerStatuses, root.Status.InitContainerStatuses = []corev1.ContainerStatus{tc.shown}, named(tc.shown)
			leaf.Status.ContainerStatuses, leaf.Status.InitContainerStatuses = []corev1.ContainerStatus{tc.reported}, named(tc.reported)
			got := TranslatePodStatus(root, leaf, mirrortest.Member)
			if diff := cmp.Diff([]corev1.ContainerStatus{tc.want}, got.ContainerStatuses); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(named(tc.want), got.InitContainerStatuses); diff != "" {
				t.Errorf("sidecar: -want +got:\n%s", diff)
			}
			root.Status = got
			if !IsPodStatusCurrent(root, TranslatePodStatus(root, leaf, mirrortest.Member)) {
				t.Error("the second result differs, so Xylem would write the status repeatedly")
			}
		})
	}
}

// The host counts the resources of the Pod itself like those of containers.
func TestResourcesOfPodItself(t *testing.T) {
	of := func(cpu string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: mirrortest.ResourceAmounts("cpu", cpu)}
	}
	for name, tc := range map[string]struct {
		spec, shown, reported, want *corev1.ResourceRequirements
		earlierHost                 bool
	}{
		"as requested":                          {spec: of("2"), reported: of("2"), want: of("2")},
		"the member has not resized it":         {spec: of("2"), shown: of("1"), reported: of("1"), want: of("1")},
		"the member shrinks it":                 {spec: of("2"), shown: of("4"), reported: of("4"), want: of("4")},
		"the member reports too much":           {spec: of("2"), shown: of("2"), reported: of("4"), want: of("2")},
		"the root has no resources of its own":  {reported: of("4")},
		"the host's Pods do not have the field": {spec: of("2"), reported: of("2"), earlierHost: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := mirrortest.Member
			m.HostShowsPodResources = !tc.earlierHost
			root, leaf := mirrortest.NewRootPod(corev1.PodSpec{Resources: tc.spec}), &corev1.Pod{}
			for pod, has := range map[*corev1.Pod]*corev1.ResourceRequirements{root: tc.shown, leaf: tc.reported} {
				if has != nil {
					pod.Status.Resources, pod.Status.AllocatedResources = has, has.Requests
				}
			}
			got := TranslatePodStatus(root, leaf, m)
			if diff := cmp.Diff(tc.want, got.Resources); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if tc.want != nil && !got.AllocatedResources.Cpu().Equal(*tc.want.Requests.Cpu()) || tc.want == nil && got.AllocatedResources != nil {
				t.Errorf("allocated: %v", got.AllocatedResources)
			}
			root.Status = got
			if !IsPodStatusCurrent(root, TranslatePodStatus(root, leaf, m)) {
				t.Error("the second result differs, so Xylem would write the status repeatedly")
			}
		})
	}
}

// Mounts that the root lacks belong to the member, or a hostile member invented them to fill the
// host's etcd.
func TestVolumeMountsAreTheRoots(t *testing.T) {
	root := mirrortest.NewRootPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "main", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}}})
	leaf := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", VolumeMounts: []corev1.VolumeMountStatus{
		{Name: "data", MountPath: "/data"}, {Name: "data", MountPath: "/etc"}, {Name: "token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
	}}}}}
	want := []corev1.VolumeMountStatus{{Name: "data", MountPath: "/data"}}
	if diff := cmp.Diff(want, TranslatePodStatus(root, leaf, mirrortest.Member).ContainerStatuses[0].VolumeMounts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A Pod's status has at most 64 KiB, regardless of what a member reports. A status within the limit
// is unchanged, and a longer one is always shortened to the same result (I5).
func TestPodStatusIsShort(t *testing.T) {
	statuses := func(containers, text int) (root, leaf *corev1.Pod) {
		root, leaf = mirrortest.NewRootPod(corev1.PodSpec{}), &corev1.Pod{}
		for i := range containers {
			name, long := fmt.Sprintf("c%d", i), strings.Repeat("x", text)
			root.Spec.Containers = append(root.Spec.Containers, corev1.Container{Name: name})
			state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: long, Reason: long}}
			leaf.Status.ContainerStatuses = append(leaf.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: name, Image: long, ImageID: long, ContainerID: long, State: state, LastTerminationState: state,
			})
		}
		return root, leaf
	}
	for name, tc := range map[string]struct {
		containers, text int
		shortened        bool
		shown            int
	}{
		"a Pod with long messages":       {3, 2000, false, 3},
		"long texts":                     {4, 4000, true, 4},
		"long texts of many containers":  {80, 4000, true, 80},
		"more containers than the limit": {2000, 4000, true, -1},
	} {
		t.Run(name, func(t *testing.T) {
			root, leaf := statuses(tc.containers, tc.text)
			got := TranslatePodStatus(root, leaf, mirrortest.Member)
			if got.Size() > StatusLimit {
				t.Errorf("the status has %d bytes, want at most %d", got.Size(), StatusLimit)
			}
			if (got.Message == shortenedMessage) != tc.shortened {
				t.Errorf("message is %.100q, want it to report the shortening: %t", got.Message, tc.shortened)
			}
			if n := len(got.ContainerStatuses); tc.shown >= 0 && n != tc.shown || n == 0 {
				t.Errorf("the status has %d containers, want %d (-1 means any)", n, tc.shown)
			}
			root.Status = got
			if !IsPodStatusCurrent(root, TranslatePodStatus(root, leaf, mirrortest.Member)) {
				t.Error("the second result differs, so Xylem would write the status repeatedly")
			}
		})
	}
}

// A kubelet counts extended resources of containers in the Pod's own status, and the host's scheduler reads them there.
func TestResourcesOfPodItselfIncludeContainers(t *testing.T) {
	m := mirrortest.Member
	m.HostShowsPodResources = true
	root := mirrortest.NewRootPod(corev1.PodSpec{
		Resources:  &corev1.ResourceRequirements{Requests: mirrortest.ResourceAmounts("cpu", "2")},
		Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: mirrortest.ResourceAmounts("cpu", "1", "example.com/gpu", "1")}}},
	})
	leaf := &corev1.Pod{Status: corev1.PodStatus{AllocatedResources: mirrortest.ResourceAmounts("cpu", "2", "example.com/gpu", "4")}}
	if diff := cmp.Diff(mirrortest.ResourceAmounts("cpu", "2", "example.com/gpu", "1"), TranslatePodStatus(root, leaf, m).AllocatedResources); diff != "" {
		t.Errorf("allocated (-want +got):\n%s", diff)
	}
}
