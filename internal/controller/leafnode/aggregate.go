package leafnode

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/nodes"
)

// aggregate adds up nodes and what is requested on them. Each change costs as
// much as the node that it concerns has resources, however many there are. Not
// safe for concurrent use.
type aggregate struct {
	nodes map[string]*node
	pods  map[types.UID]pod

	// The sums over the usable nodes.
	capacity, free       corev1.ResourceList
	architectures, osses map[string]int
	usable, ready        int
}

// node is what is known of a node; known is false while only Pods on it are.
type node struct {
	known, usable, ready  bool
	capacity, allocatable corev1.ResourceList
	architecture, os      string
	requested             corev1.ResourceList
	pods                  int
}

// pod is a Pod that takes room on a node.
type pod struct {
	node     string
	requests corev1.ResourceList
}

func newAggregate() *aggregate {
	return &aggregate{
		nodes: map[string]*node{}, pods: map[types.UID]pod{},
		capacity: corev1.ResourceList{}, free: corev1.ResourceList{},
		architectures: map[string]int{}, osses: map[string]int{},
	}
}

// setNode takes in a node, new or changed.
func (a *aggregate) setNode(n *corev1.Node) {
	a.change(n.Name, func(entry *node) {
		entry.known = true
		entry.usable, entry.ready = usable(n), nodes.IsReady(n)
		entry.capacity, entry.allocatable = n.Status.Capacity, n.Status.Allocatable
		entry.architecture, entry.os = n.Status.NodeInfo.Architecture, n.Status.NodeInfo.OperatingSystem
	})
}

// dropNode forgets a node; what Pods request there is kept for its return.
func (a *aggregate) dropNode(name string) {
	a.change(name, func(entry *node) { entry.known, entry.usable, entry.ready = false, false, false })
}

// setPod takes in a Pod, new or changed.
func (a *aggregate) setPod(p *corev1.Pod) {
	a.dropPod(p.UID)
	if p.Spec.NodeName == "" || podstatus.Finished(p) {
		return
	}
	entry := pod{node: p.Spec.NodeName, requests: resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})}
	a.pods[p.UID] = entry
	a.change(entry.node, func(n *node) {
		n.pods++
		add(n.requested, entry.requests)
	})
}

// dropPod forgets a Pod.
func (a *aggregate) dropPod(uid types.UID) {
	entry, ok := a.pods[uid]
	if !ok {
		return
	}
	delete(a.pods, uid)
	a.change(entry.node, func(n *node) {
		n.pods--
		subtract(n.requested, entry.requests)
	})
}

// change takes a node out of the sums, lets it be changed, and puts it back.
func (a *aggregate) change(name string, change func(*node)) {
	entry := a.nodes[name]
	if entry == nil {
		entry = &node{requested: corev1.ResourceList{}}
		a.nodes[name] = entry
	}
	if entry.ready {
		a.ready--
	}
	if entry.usable {
		subtract(a.capacity, entry.capacity)
		subtract(a.free, entry.free())
		a.count(entry, -1)
	}
	change(entry)
	if entry.ready {
		a.ready++
	}
	if entry.usable {
		add(a.capacity, entry.capacity)
		add(a.free, entry.free())
		a.count(entry, 1)
	}
	if !entry.known && entry.pods == 0 {
		delete(a.nodes, name)
	}
}

func (a *aggregate) count(entry *node, by int) {
	a.usable += by
	a.architectures[entry.architecture] += by
	a.osses[entry.os] += by
}

// free is what is left of a node's allocatable, resource by resource; never
// negative, so that a node that is over-committed takes nothing from others.
func (n *node) free() corev1.ResourceList {
	free := make(corev1.ResourceList, len(n.allocatable))
	for name, allocatable := range n.allocatable {
		left := allocatable.DeepCopy()
		left.Sub(n.requestedOf(name))
		if left.Sign() < 0 {
			left = *resource.NewQuantity(0, allocatable.Format)
		}
		free[name] = left
	}
	return free
}

func (n *node) requestedOf(name corev1.ResourceName) resource.Quantity {
	if name == corev1.ResourcePods {
		return *resource.NewQuantity(int64(n.pods), resource.DecimalSI)
	}
	return n.requested[name]
}

// facts are the sums of now.
func (a *aggregate) facts() member.NodeFacts {
	facts := member.NodeFacts{
		Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{}, Nodes: a.usable, Ready: a.ready,
		Architecture: agreed(a.architectures), OperatingSystem: agreed(a.osses),
	}
	for _, name := range shown(a.capacity) {
		capacity := a.capacity[name]
		free, some := a.free[name]
		if !some {
			free = *resource.NewQuantity(0, capacity.Format)
		}
		facts.Capacity[name], facts.Allocatable[name] = capacity.DeepCopy(), free.DeepCopy()
	}
	return facts
}

// shownLimit of the resources that a virtual node shows: each publication is a write to
// the host, and machines have a dozen kinds of resources.
const shownLimit = 64

// shown are the names of the resources that the virtual node shows: those that all
// Kubernetes nodes have first, then by name.
func shown(list corev1.ResourceList) []corev1.ResourceName {
	names := slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int {
		return cmp.Or(strings.Count(string(a), "/")-strings.Count(string(b), "/"), strings.Compare(string(a), string(b)))
	})
	return names[:min(len(names), shownLimit)]
}

// agreed is the one value that is counted, empty if there are several or none.
func agreed(counts map[string]int) string {
	only := ""
	for value, count := range counts {
		switch {
		case count == 0:
		case only != "" || value == "":
			return ""
		default:
			only = value
		}
	}
	return only
}

// usable: a Pod of the host could be scheduled there.
func usable(n *corev1.Node) bool {
	return nodes.IsReady(n) && !n.Spec.Unschedulable && n.DeletionTimestamp == nil && !slices.ContainsFunc(n.Spec.Taints, keepsOut)
}

// keepsOut reports whether a taint keeps ordinary Pods off a node, as a control
// plane's does: what is there is no room for the host's Pods.
func keepsOut(taint corev1.Taint) bool { return taint.Effect != corev1.TaintEffectPreferNoSchedule }

func add(to, what corev1.ResourceList) {
	for name, quantity := range what {
		sum := to[name]
		sum.Add(quantity)
		to[name] = sum
	}
}

func subtract(from, what corev1.ResourceList) {
	for name, quantity := range what {
		rest := from[name]
		rest.Sub(quantity)
		if from[name] = rest; rest.IsZero() {
			delete(from, name) // names come and go with nodes
		}
	}
}
