package leafnode

import (
	"fmt"
	"math/rand/v2"
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

func notReady(n *corev1.Node)      { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
func unschedulable(n *corev1.Node) { n.Spec.Unschedulable = true }
func tainted(effect corev1.TaintEffect) func(*corev1.Node) {
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

func TestAggregate(t *testing.T) {
	none := member.NodeFacts{Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{}}
	closed := none
	closed.Ready = 1
	sum := func(nodes int, capacity, allocatable corev1.ResourceList) member.NodeFacts {
		return member.NodeFacts{Capacity: capacity, Allocatable: allocatable, Nodes: nodes, Ready: nodes, Architecture: "amd64", OperatingSystem: "linux"}
	}
	one := sum(1, resources("4", "8Gi", "110"), resources("3800m", "7Gi", "110"))
	for name, tc := range map[string]struct {
		do   func(*aggregate)
		want member.NodeFacts
	}{
		"nothing":  {do: func(*aggregate) {}, want: none},
		"one node": {do: func(a *aggregate) { a.setNode(leafNode("a")) }, want: one},
		"two nodes": {do: func(a *aggregate) { a.setNode(leafNode("a")); a.setNode(leafNode("b")) },
			want: sum(2, resources("8", "16Gi", "220"), resources("7600m", "14Gi", "220"))},
		"the same node again": {do: func(a *aggregate) { a.setNode(leafNode("a")); a.setNode(leafNode("a")) }, want: one},
		"not ready":           {do: func(a *aggregate) { a.setNode(leafNode("a", notReady)) }, want: none},
		"cordoned":            {do: func(a *aggregate) { a.setNode(leafNode("a")); a.setNode(leafNode("a", unschedulable)) }, want: closed},
		"kept for others":     {do: func(a *aggregate) { a.setNode(leafNode("a", tainted(corev1.TaintEffectNoSchedule))) }, want: closed},
		"better left alone":   {do: func(a *aggregate) { a.setNode(leafNode("a", tainted(corev1.TaintEffectPreferNoSchedule))) }, want: one},
		"gone":                {do: func(a *aggregate) { a.setNode(leafNode("a")); a.dropNode("a") }, want: none},
		"a Pod":               {do: func(a *aggregate) { a.setNode(leafNode("a")); a.setPod(workload("p", "a", "800m")) }, want: sum(1, resources("4", "8Gi", "110"), resources("3", "7Gi", "109"))},
		"a Pod before its node": {do: func(a *aggregate) { a.setPod(workload("p", "a", "800m")); a.setNode(leafNode("a")) },
			want: sum(1, resources("4", "8Gi", "110"), resources("3", "7Gi", "109"))},
		"a Pod gone": {do: func(a *aggregate) {
			a.setPod(workload("p", "a", "1"))
			a.setNode(leafNode("a"))
			a.dropPod("p")
			a.dropPod("p")
		}, want: one},
		"a Pod that ended": {do: func(a *aggregate) {
			a.setNode(leafNode("a"))
			a.setPod(workload("p", "a", "1"))
			a.setPod(workload("p", "a", "1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
		}, want: one},
		"a Pod on a node that is not counted": {do: func(a *aggregate) {
			a.setNode(leafNode("a"))
			a.setNode(leafNode("b", notReady))
			a.setPod(workload("p", "b", "1"))
			a.setPod(workload("q", "", "1"))
		}, want: one},
		"a node that comes back with its Pods": {do: func(a *aggregate) {
			a.setNode(leafNode("a"))
			a.setPod(workload("p", "a", "800m"))
			a.dropNode("a")
			a.setNode(leafNode("a"))
		}, want: sum(1, resources("4", "8Gi", "110"), resources("3", "7Gi", "109"))},
		"over-committed": {do: func(a *aggregate) {
			a.setNode(leafNode("a"))
			a.setNode(leafNode("b"))
			a.setPod(workload("p", "a", "100"))
		}, want: sum(2, resources("8", "16Gi", "220"), resources("3800m", "14Gi", "219"))},
		"sidecars, overhead and Pod-level requests": {do: func(a *aggregate) {
			a.setNode(leafNode("a"))
			a.setPod(workload("p", "a", "100m", func(p *corev1.Pod) {
				p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
				p.Spec.InitContainers = []corev1.Container{{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: p.Spec.Containers[0].Resources}}
			}))
			a.setPod(workload("q", "a", "100m", func(p *corev1.Pod) {
				p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}
			}))
		}, want: sum(1, resources("4", "8Gi", "110"), resources("3", "7Gi", "108"))},
		"architectures differ": {do: func(a *aggregate) { a.setNode(leafNode("a")); a.setNode(leafNode("b", arm)) },
			want: member.NodeFacts{Nodes: 2, Ready: 2, OperatingSystem: "linux", Capacity: resources("8", "16Gi", "220"), Allocatable: resources("7600m", "14Gi", "220")}},
		"architectures agree again": {do: func(a *aggregate) {
			a.setNode(leafNode("a"))
			a.setNode(leafNode("b", arm))
			a.dropNode("b")
		}, want: one},
		"a resource that goes": {do: func(a *aggregate) {
			a.setNode(leafNode("a", func(n *corev1.Node) {
				n.Status.Capacity["gpu"], n.Status.Allocatable["gpu"] = resource.MustParse("2"), resource.MustParse("2")
			}))
			a.setNode(leafNode("a"))
		}, want: one},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAggregate()
			tc.do(a)
			if diff := cmp.Diff(tc.want, a.facts()); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

// However it comes about, the sum is that of what is there in the end.
func TestAggregateForgetsHowItCameAbout(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	wandering := newAggregate()
	nodes, pods := map[string]*corev1.Node{}, map[string]*corev1.Pod{}
	for range 5000 {
		node, uid := fmt.Sprintf("n%d", random.IntN(5)), fmt.Sprintf("p%d", random.IntN(30))
		switch random.IntN(5) {
		case 0:
			nodes[node] = leafNode(node)
			if random.IntN(3) == 0 {
				unschedulable(nodes[node])
			}
			wandering.setNode(nodes[node])
		case 1:
			delete(nodes, node)
			wandering.dropNode(node)
		case 2:
			delete(pods, uid)
			wandering.dropPod(types.UID(uid))
		default:
			pods[uid] = workload(uid, node, fmt.Sprintf("%dm", random.IntN(2000)))
			wandering.setPod(pods[uid])
		}
	}
	straight := newAggregate()
	for _, n := range nodes {
		straight.setNode(n)
	}
	for _, p := range pods {
		straight.setPod(p)
	}
	if diff := cmp.Diff(straight.facts(), wandering.facts()); diff != "" {
		t.Errorf("facts (-straight +wandering):\n%s", diff)
	}
}

// A Pod that was made anew while the watch was away comes as an update of the
// old one, whose requests must not be counted for ever.
func TestPodMadeAnew(t *testing.T) {
	s := &summer{sum: newAggregate(), changed: make(chan struct{}, 1)}
	s.sum.setNode(leafNode("a"))
	h := on(s, s.sum.setPod, func(p *corev1.Pod) { s.sum.dropPod(p.UID) })
	h.OnAdd(workload("old", "a", "1"), false)
	h.OnUpdate(workload("old", "a", "1"), workload("new", "a", "800m"))
	want := resources("3", "7Gi", "109")
	if diff := cmp.Diff(want, s.sum.facts().Allocatable); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
}

// However many resources a member's nodes make up, the virtual node shows few of them:
// the usual ones, and of the others always the same.
func TestFewResourcesAreShown(t *testing.T) {
	a := newAggregate()
	long := strings.Repeat("a", 60)
	made := func(round int) {
		for n := range 10 {
			a.setNode(leafNode(fmt.Sprint(n), func(node *corev1.Node) {
				for i := range 256 {
					name := corev1.ResourceName(fmt.Sprintf("%s.%s.%s.x%d-%d-%d/%s", long, long, long, round, n, i, long))
					node.Status.Capacity[name], node.Status.Allocatable[name] = resource.MustParse("1"), resource.MustParse("1")
				}
			}))
		}
	}
	made(1)
	facts := a.facts()
	if len(facts.Capacity) != shownLimit || len(facts.Allocatable) != shownLimit {
		t.Errorf("%d resources, %d of them allocatable", len(facts.Capacity), len(facts.Allocatable))
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if _, shown := facts.Capacity[name]; !shown {
			t.Errorf("%s is not shown", name)
		}
	}
	status := corev1.NodeStatus{Capacity: facts.Capacity, Allocatable: facts.Allocatable}
	if size := status.Size(); size > 64<<10 {
		t.Errorf("the status has %d bytes", size)
	}
	if diff := cmp.Diff(facts, a.facts()); diff != "" {
		t.Errorf("another time:\n%s", diff)
	}
	before := len(a.capacity)
	made(2)
	if len(a.capacity) != before {
		t.Errorf("%d names are remembered, and were %d: those that are gone are not forgotten", len(a.capacity), before)
	}
}
