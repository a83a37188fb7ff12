package virtualnode

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/internal/member"
)

func resources(cpu, memory, pods string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods),
	}
}

func leafNode(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Capacity: resources("4", "8Gi", "110"), Allocatable: resources("3800m", "7Gi", "110"),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux"},
		},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func declares(features ...string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.DeclaredFeatures = features }
}

func notReady(n *corev1.Node)      { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
func unschedulable(n *corev1.Node) { n.Spec.Unschedulable = true }
func taintedWith(effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "t", Effect: effect}} }
}
func arm(n *corev1.Node) { n.Status.NodeInfo.Architecture = "arm64" }

func workload(uid, node, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func TestSumCapacity(t *testing.T) {
	none := member.NodeSummary{Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{}}
	closed := none
	closed.Ready = 1
	sums := func(nodes int, capacity, allocatable corev1.ResourceList) member.NodeSummary {
		return member.NodeSummary{Capacity: capacity, Allocatable: allocatable, Nodes: nodes, Ready: nodes, Architecture: "amd64", OperatingSystem: "linux"}
	}
	one := sums(1, resources("4", "8Gi", "110"), resources("3800m", "7Gi", "110"))
	nodes := func(nodes ...*corev1.Node) []*corev1.Node { return nodes }
	pods := func(pods ...*corev1.Pod) []*corev1.Pod { return pods }
	for name, tc := range map[string]struct {
		nodes []*corev1.Node
		pods  []*corev1.Pod
		want  member.NodeSummary
	}{
		"no nodes":                             {want: none},
		"one node":                             {nodes: nodes(leafNode("a")), want: one},
		"two nodes":                            {nodes: nodes(leafNode("a"), leafNode("b")), want: sums(2, resources("8", "16Gi", "220"), resources("7600m", "14Gi", "220"))},
		"a node that is not ready":             {nodes: nodes(leafNode("a", notReady)), want: none},
		"a cordoned node":                      {nodes: nodes(leafNode("a", unschedulable)), want: closed},
		"a node with a NoSchedule taint":       {nodes: nodes(leafNode("a", taintedWith(corev1.TaintEffectNoSchedule))), want: closed},
		"a node with a PreferNoSchedule taint": {nodes: nodes(leafNode("a", taintedWith(corev1.TaintEffectPreferNoSchedule))), want: one},
		"a node with a Pod":                    {nodes: nodes(leafNode("a")), pods: pods(workload("p", "a", "800m")), want: sums(1, resources("4", "8Gi", "110"), resources("3", "7Gi", "109"))},
		"a Pod whose node was deleted":         {pods: pods(workload("p", "a", "1")), want: none},
		"a node with a finished Pod": {nodes: nodes(leafNode("a")), want: one,
			pods: pods(workload("p", "a", "1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))},
		"Pods without a node, or on a node that is not ready": {nodes: nodes(leafNode("a"), leafNode("b", notReady)),
			pods: pods(workload("p", "b", "1"), workload("q", "", "1")), want: one},
		"an overcommitted node": {nodes: nodes(leafNode("a"), leafNode("b")), pods: pods(workload("p", "a", "100")),
			want: sums(2, resources("8", "16Gi", "220"), resources("3800m", "14Gi", "219"))},
		"Pods with sidecars, overhead and Pod-level requests": {nodes: nodes(leafNode("a")), pods: pods(
			workload("p", "a", "100m", func(p *corev1.Pod) {
				p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
				p.Spec.InitContainers = []corev1.Container{{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: p.Spec.Containers[0].Resources}}
			}),
			workload("q", "a", "100m", func(p *corev1.Pod) {
				p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}
			}),
		), want: sums(1, resources("4", "8Gi", "110"), resources("3", "7Gi", "108"))},
		"a Pod that its node shrinks, and one whose resize its node cannot hold": {nodes: nodes(leafNode("a")), pods: pods(
			workload("p", "a", "100m", allocatedCPU("500m")),
			workload("q", "a", "3", allocatedCPU("300m"), func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
			}),
		), want: sums(1, resources("4", "8Gi", "110"), resources("3", "7Gi", "108"))},
		"features that all nodes declare": {nodes: nodes(
			leafNode("a", declares("GuaranteedQoSPodCPUResize", "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers")),
			leafNode("b", declares("InPlacePodLevelResourcesVerticalScaling")),
			leafNode("c", notReady)),
			want: func() member.NodeSummary {
				sum := sums(2, resources("8", "16Gi", "220"), resources("7600m", "14Gi", "220"))
				sum.ResizeFeatures = []string{"InPlacePodLevelResourcesVerticalScaling"}
				return sum
			}()},
		"nodes with different architectures": {nodes: nodes(leafNode("a"), leafNode("b", arm)),
			want: member.NodeSummary{Nodes: 2, Ready: 2, OperatingSystem: "linux", Capacity: resources("8", "16Gi", "220"), Allocatable: resources("7600m", "14Gi", "220")}},
		"a node with a resource that is not allocatable": {nodes: nodes(leafNode("a", func(n *corev1.Node) { delete(n.Status.Allocatable, corev1.ResourceMemory) })),
			want: sums(1, resources("4", "8Gi", "110"), resources("3800m", "0", "110"))},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sumCapacity(values(tc.nodes), requestsByNode(workloads(tc.pods)))); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

// allocatedCPU makes the kubelet report what it has allocated to a Pod.
func allocatedCPU(amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, AllocatedResources: cpu, Resources: &corev1.ResourceRequirements{Requests: cpu}}}
	}
}

// workloads returns what the cache keeps of Pods.
func workloads(pods []*corev1.Pod) []*member.Workload {
	var kept []*member.Workload
	for _, pod := range pods {
		if w := member.WorkloadOf(pod); w != nil {
			kept = append(kept, w)
		}
	}
	return kept
}

func values[T any](of []*T) []T {
	all := make([]T, len(of))
	for i := range of {
		all[i] = *of[i]
	}
	return all
}

// sumCapacity must not change the objects, because they belong to the caches.
func TestSumCapacityChangesNothing(t *testing.T) {
	huge := func(n *corev1.Node) {
		n.Status.Allocatable["huge"] = resource.MustParse("123456789012345678901234567890")
	}
	nodes := values([]*corev1.Node{leafNode("a", huge), leafNode("b", huge)})
	pods := workloads([]*corev1.Pod{workload("p", "a", "800m"), workload("q", "a", "800m")})
	pods[0].Requests["huge"] = resource.MustParse("12345678901234567890123456789")
	copied := func() []any {
		return []any{(&corev1.NodeList{Items: nodes}).DeepCopy(), pods[0].Requests.DeepCopy(), pods[1].Requests.DeepCopy()}
	}
	want := copied()
	sumCapacity(nodes, requestsByNode(pods))
	if diff := cmp.Diff(want, copied()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// The virtual node reports a limited number of resources. They always include the standard
// resources, and the choice of the others is deterministic.
func TestFewResourcesAreShown(t *testing.T) {
	long := strings.Repeat("a", 60)
	var nodes []corev1.Node
	for n := range 10 {
		nodes = append(nodes, *leafNode(fmt.Sprint(n), func(node *corev1.Node) {
			for i := range 256 {
				name := corev1.ResourceName(fmt.Sprintf("%s.%s.%s.x%d-%d/%s", long, long, long, n, i, long))
				node.Status.Capacity[name], node.Status.Allocatable[name] = resource.MustParse("1"), resource.MustParse("1")
			}
		}))
	}
	facts := sumCapacity(nodes, nil)
	if len(facts.Capacity) != maxReportedResources || len(facts.Allocatable) != maxReportedResources {
		t.Errorf("got %d resources and %d allocatable resources, want %d of each", len(facts.Capacity), len(facts.Allocatable), maxReportedResources)
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if _, shown := facts.Capacity[name]; !shown {
			t.Errorf("%s is not reported", name)
		}
	}
	status := corev1.NodeStatus{Capacity: facts.Capacity, Allocatable: facts.Allocatable}
	if size := status.Size(); size > 64<<10 {
		t.Errorf("the status has %d bytes, want at most 64 KiB", size)
	}
	if diff := cmp.Diff(facts, sumCapacity(nodes, nil)); diff != "" {
		t.Errorf("the second result differs:\n%s", diff)
	}
}

func BenchmarkSumCapacity(b *testing.B) {
	var nodes []corev1.Node
	var pods []*corev1.Pod
	for i := range 500 {
		nodes = append(nodes, *leafNode(fmt.Sprint(i)))
	}
	for i := range 10000 {
		pods = append(pods, workload(fmt.Sprint(i), fmt.Sprint(i%500), "100m"))
	}
	kept := workloads(pods)
	for b.Loop() {
		sumCapacity(nodes, requestsByNode(kept))
	}
}
