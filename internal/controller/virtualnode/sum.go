package virtualnode

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/nodes"
)

// sumCapacity returns the capacity of the nodes, minus the requests of the Pods on each node.
func sumCapacity(list []corev1.Node, requested map[string]corev1.ResourceList) member.NodeSummary {
	capacity, free := corev1.ResourceList{}, corev1.ResourceList{}
	architectures, osses := sets.New[string](), sets.New[string]()
	var facts member.NodeSummary
	features := map[string]int{}
	for i := range list {
		n := &list[i]
		if nodes.IsReady(n) {
			facts.Ready++
		}
		if !nodes.IsUsable(n) {
			continue
		}
		facts.Nodes++
		architectures.Insert(n.Status.NodeInfo.Architecture)
		osses.Insert(n.Status.NodeInfo.OperatingSystem)
		for _, name := range nodes.ResizeFeaturesOf(n) {
			features[name]++
		}
		addTo(capacity, n.Status.Capacity)
		addTo(free, remainingOf(n.Status.Allocatable, requested[n.Name]))
	}
	facts.Architecture, facts.OperatingSystem = onlyValueOf(architectures), onlyValueOf(osses)
	maps.DeleteFunc(features, func(_ string, declaring int) bool { return declaring < facts.Nodes })
	facts.ResizeFeatures = slices.Sorted(maps.Keys(features))
	facts.Capacity, facts.Allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	for _, name := range reportedResources(capacity) {
		total := capacity[name]
		facts.Capacity[name] = total
		if left, some := free[name]; some {
			facts.Allocatable[name] = left
		} else {
			facts.Allocatable[name] = *resource.NewQuantity(0, total.Format)
		}
	}
	return facts
}

// requestsByNode returns the requests of the Pods on each node.
func requestsByNode(workloads []*member.Workload) map[string]corev1.ResourceList {
	requested := map[string]corev1.ResourceList{}
	one := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)}
	for _, w := range workloads {
		if requested[w.NodeName] == nil {
			requested[w.NodeName] = corev1.ResourceList{}
		}
		addTo(requested[w.NodeName], one)
		addTo(requested[w.NodeName], w.Requests)
	}
	return requested
}

// remainingOf returns what remains of each of a node's allocatable resources. The result is never
// negative, so an overcommitted node does not reduce the capacity of the others.
func remainingOf(allocatable, requested corev1.ResourceList) corev1.ResourceList {
	free := make(corev1.ResourceList, len(allocatable))
	for name, quantity := range allocatable {
		left := quantity.DeepCopy()
		left.Sub(requested[name])
		if left.Sign() < 0 {
			left = *resource.NewQuantity(0, quantity.Format)
		}
		free[name] = left
	}
	return free
}

// maxReportedResources is the maximum number of resources that a virtual node reports. It bounds the size of
// each write to the host. Real nodes have about a dozen resources.
const maxReportedResources = 64

// reportedResources returns the names of the resources that the virtual node reports: first Kubernetes'
// standard resources, then the others by name.
func reportedResources(list corev1.ResourceList) []corev1.ResourceName {
	names := slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int {
		return cmp.Or(strings.Count(string(a), "/")-strings.Count(string(b), "/"), strings.Compare(string(a), string(b)))
	})
	return names[:min(len(names), maxReportedResources)]
}

// onlyValueOf returns the set's only value, or an empty string if there is not exactly one.
func onlyValueOf(values sets.Set[string]) string {
	if len(values) != 1 {
		return ""
	}
	return values.UnsortedList()[0]
}

func addTo(total, more corev1.ResourceList) {
	for name, quantity := range more {
		sum := total[name]
		sum.Add(quantity)
		total[name] = sum
	}
}
