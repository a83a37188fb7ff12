package manager

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member/membertest"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

const virtual = "kosmos-cluster38"

// knowing returns hostPods that know one virtual node.
func knowing() *hostPods {
	p := newHostPods()
	p.virtualNodes.Insert(virtual)
	return p
}

// hostPod returns a Pod as a kubelet reports it.
func hostPod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "4711",
			Labels: map[string]string{"app": "shop", "pod-template-hash": "5d4f8c7b9"}, Annotations: map[string]string{"example.com/checksum": strings.Repeat("0", 64)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop-5d4f8c7b9", UID: "4f1c", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "192.0.2.1", PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for i := range 3 {
		container := corev1.Container{Name: fmt.Sprint("c", i), Image: "registry.example.com/shop:v1"}
		for e := range 20 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", e), Value: strings.Repeat("v", 20)})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, ImageID: strings.Repeat("i", 100)})
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func claiming(pod *corev1.Pod) {
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
	}
}

func TestHostPods(t *testing.T) {
	condition := func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: v1alpha1.PodPushed, Status: corev1.ConditionFalse})
	}
	for name, tc := range map[string]struct {
		pod             *corev1.Pod
		kept, unchanged bool
	}{
		"an unbound Pod":                              {hostPod("a", ""), true, true},
		"a Pod on a virtual node":                     {hostPod("a", virtual), true, true},
		"a Pod on another node":                       {hostPod("a", "worker"), false, false},
		"a Pod on another node that uses claims":      {hostPod("a", "worker", claiming), true, false},
		"a Pod that was pushed before it was bound":   {hostPod("a", "worker", func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationLeafUID] = "leaf" }), true, true},
		"a Pod that Xylem reported on":                {hostPod("a", "worker", condition), true, true},
		"a Pod that uses claims, and that was pushed": {hostPod("a", "worker", claiming, condition), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			whole := tc.pod.DeepCopy()
			obj, err := knowing().reducePod(tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			kept, ok := obj.(*corev1.Pod)
			if ok != tc.kept {
				t.Fatalf("kept: %t, want %t", ok, tc.kept)
			}
			if ok && (fmt.Sprint(podspec.ClaimNamesOfPod(kept)) != fmt.Sprint(podspec.ClaimNamesOfPod(whole)) || kept.UID != whole.UID || kept.Status.Phase != whole.Status.Phase ||
				kept.Spec.NodeName != whole.Spec.NodeName || len(kept.OwnerReferences) != 1) {
				t.Errorf("the kept Pod does not show that it uses its claims: %+v", kept)
			}
			if ok && (len(kept.Spec.Containers) > 0) != tc.unchanged {
				t.Errorf("has %d containers, want all: %t", len(kept.Spec.Containers), tc.unchanged)
			}
		})
	}
}

// A host has many more Pods than those that concern Xylem. Their memory has a budget: raise it only with a reason.
func TestHostPodsTakeLittleMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		budget uint64 // bytes for each Pod
		change []func(*corev1.Pod)
	}{
		"Pods without claims": {budget: 64},
		"Pods with claims":    {budget: 2500, change: []func(*corev1.Pod){claiming}},
	} {
		t.Run(name, func(t *testing.T) {
			p := knowing()
			each := membertest.HeapBytesPerValue(t, 2000, func(i int) any {
				obj, err := p.reducePod(hostPod(fmt.Sprintf("shop-5d4f8c7b9-%05d", i), fmt.Sprint("worker-", i%100), tc.change...))
				if err != nil {
					t.Fatal(err)
				}
				return obj
			})
			if each > tc.budget {
				t.Errorf("each Pod takes %d bytes, want at most %d", each, tc.budget)
			}
		})
	}
}

// If Pods named a virtual node before Xylem knew the node, the cache lists the Pods again.
func TestHostPodsOfNewNode(t *testing.T) {
	for name, tc := range map[string]struct {
		node  string
		lists int
	}{
		"Pods on it":   {virtual, 1},
		"on a group":   {"a." + virtual, 1},
		"other Pods":   {"worker", 0},
		"unbound Pods": {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, lists := newHostPods(), 0
			p.listAgain = func() { lists++ }
			if _, err := p.reducePod(hostPod("a", tc.node)); err != nil {
				t.Fatal(err)
			}
			registration := &v1alpha1.ClusterRegistration{Spec: v1alpha1.ClusterRegistrationSpec{Node: v1alpha1.NodeSpec{Name: virtual}}}
			for range 2 {
				if _, err := p.transformRegistration(registration); err != nil {
					t.Fatal(err)
				}
			}
			if lists != tc.lists {
				t.Errorf("Pods were listed %d times, want %d", lists, tc.lists)
			}
			if obj, err := p.reducePod(hostPod("a", virtual)); err != nil || obj == nil {
				t.Errorf("the Pod is not kept then; error %v", err)
			}
		})
	}
}
