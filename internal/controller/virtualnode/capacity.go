package virtualnode

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/reduced"
)

// publishPause is the time between two publications, unless leaf_pv waits for a topology. A publication may cause a write to the Node,
// which every scheduler and kube-proxy watches, and the free capacity of a busy member changes
// several times a second. The delay also limits the CPU time of the sums: one over 10,000 Pods on
// 500 nodes takes 20 ms.
const (
	publishPause = 5 * time.Second
	// urgentPause is the minimum time between two publications.
	urgentPause = time.Second
)

// capacityPublisher computes the sum of a member's cached nodes and Pods when they change, and publishes it.
type capacityPublisher struct {
	nodes, workloads cache.Cache
	clock            clock.Clock
	publish          func(member.NodeSummary)
	// changed contains a token while there is a change to publish, and urgent one if the change must not wait.
	changed, urgent chan struct{}

	// rules are the rules of spec.nodes, and memberNode is the last part of the virtual nodes' names.
	rules      []v1alpha1.NodeGroup
	memberNode string
	hostID     string
	volumes    toolscache.Indexer // set if there are rules
	// shown are the keys of the labels of the last published topologies.
	shown atomic.Pointer[sets.Set[string]]
	// matches remembers which topologies the nodes satisfy, and kept the groups that were published last.
	matches topologyMatches
	kept    sets.Set[string]
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// SetupCapacity makes a Link publish its member's capacity. The event handlers stop when the Link's caches stop.
func SetupCapacity(link *member.Link) error {
	s := &capacityPublisher{
		nodes: link.Cache, workloads: link.Workloads,
		clock: clock.RealClock{}, publish: link.PublishNodeSummary, changed: make(chan struct{}, 1), urgent: make(chan struct{}, 1),
		rules: link.NodeGroups, memberNode: link.NodeName, hostID: link.HostID,
	}
	link.AddRunnable(s.run)
	return nil
}

func (s *capacityPublisher) run(ctx context.Context) error {
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { putToken(s.changed) },
		UpdateFunc: func(any, any) { putToken(s.changed) },
		DeleteFunc: func(any) { putToken(s.changed) },
	}
	memberNodes, err := reduced.GetSharedInformer(ctx, s.nodes, &corev1.Node{})
	if err != nil {
		return err
	}
	workloads, err := reduced.GetSharedInformer(ctx, s.workloads, &corev1.Pod{})
	if err != nil {
		return err
	}
	for _, informer := range []toolscache.SharedIndexInformer{memberNodes, workloads} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("add an event handler for nodes or Pods: %w", err)
		}
	}
	if len(s.rules) > 0 {
		if err := s.watchTopologies(ctx); err != nil {
			return err
		}
	}
	putToken(s.changed) // a member without nodes causes no event, but must be published too
	return s.publishChanges(ctx, workloads.GetIndexer())
}

func putToken(into chan struct{}) {
	select {
	case into <- struct{}{}:
	default:
	}
}

// publishChanges publishes the first sum immediately, and later sums when they differ, at most one
// per publishPause unless a change is urgent.
func (s *capacityPublisher) publishChanges(ctx context.Context, workloads toolscache.Indexer) error {
	var last *member.NodeSummary
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
		facts, err := s.sumFromCaches(ctx, workloads)
		if err != nil {
			return err
		}
		if last == nil || !equality.Semantic.DeepEqual(*last, facts) {
			s.publish(facts)
			last = &facts
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.clock.After(urgentPause):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.urgent: // the change also put a token into changed
		case <-s.clock.After(publishPause - urgentPause):
		}
	}
}

func (s *capacityPublisher) sumFromCaches(ctx context.Context, others toolscache.Indexer) (member.NodeSummary, error) {
	var list corev1.NodeList
	if err := s.nodes.List(ctx, &list, index.ReadOnly); err != nil {
		return member.NodeSummary{}, fmt.Errorf("list the member's nodes: %w", err)
	}
	var workloads []*member.Workload
	for _, obj := range others.List() {
		if w, ok := obj.(*member.Workload); ok {
			workloads = append(workloads, w)
		}
	}
	requested := requestsByNode(workloads)
	all := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	facts := sumCapacity(all, requested)
	if len(s.rules) > 0 {
		s.addGroups(&facts, all, requested)
	}
	return facts, nil
}

// addGroups adds the groups of the nodes to the summary.
func (s *capacityPublisher) addGroups(facts *member.NodeSummary, list []*corev1.Node, requested map[string]corev1.ResourceList) {
	g := grouping{rules: s.rules, memberNode: s.memberNode, requested: requested, before: s.kept, matches: &s.matches}
	var left int
	g.topologies, left = s.topologiesInUse()
	if left > 0 {
		g.problems = append(g.problems, fmt.Sprintf("the volumes have too many different topologies for virtual nodes (the limit is %d). Pods that use volumes of %d others cannot be scheduled", maxTopologiesOfMember, left))
	}
	facts.GroupRules = s.rules
	facts.Groups, facts.GroupProblem = g.groupNodes(list)
	shown := sets.New[string]()
	for _, t := range g.topologies {
		shown.Insert(t.Label)
	}
	s.shown.Store(&shown)
	s.kept = sets.New[string]()
	for i := range facts.Groups {
		s.kept.Insert(facts.Groups[i].Name)
	}
}

// topologyIndex indexes the member's volumes by the topologies of their node affinity.
const topologyIndex = "xylem.volumes-by-topology"

// watchTopologies indexes the member's volumes, whose topologies the virtual nodes of groups show.
func (s *capacityPublisher) watchTopologies(ctx context.Context) error {
	volumes, err := reduced.GetSharedInformer(ctx, s.nodes, &corev1.PersistentVolume{})
	if err != nil {
		return err
	}
	s.volumes = volumes.GetIndexer()
	topologiesOf := func(obj any) []hostpv.Topology {
		pv, ok := obj.(*corev1.PersistentVolume)
		if !ok || pv.Labels[v1alpha1.LabelHost] != s.hostID {
			return nil
		}
		return hostpv.TopologiesOf(pv.Spec.NodeAffinity)
	}
	if err := s.volumes.AddIndexers(toolscache.Indexers{topologyIndex: func(obj any) ([]string, error) {
		var keys []string
		for _, t := range topologiesOf(obj) {
			keys = append(keys, t.Label)
		}
		return keys, nil
	}}); err != nil {
		return fmt.Errorf("index the member's volumes by topology: %w", err)
	}
	observe := func(obj any) {
		for _, t := range topologiesOf(obj) {
			if shown := s.shown.Load(); shown == nil || !shown.Has(t.Label) {
				putToken(s.changed)
				putToken(s.urgent) // leaf_pv waits until a virtual node shows the topology
			}
		}
	}
	if _, err := volumes.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: observe, UpdateFunc: func(_, is any) { observe(is) }}); err != nil {
		return fmt.Errorf("add an event handler for volumes: %w", err)
	}
	return nil
}

// maxTopologiesOfMember is the maximum number of different topologies of a member's volumes. It bounds the size of the virtual
// nodes, because volumes whose topology is a single node have as many topologies as the member has nodes.
const maxTopologiesOfMember = 1000

// topologiesInUse returns the different topologies of the member's volumes that Xylem uses, and how many it leaves out.
func (s *capacityPublisher) topologiesInUse() (found []hostpv.Topology, left int) {
	labels := slices.Sorted(slices.Values(s.volumes.ListIndexFuncValues(topologyIndex)))
	for _, label := range labels[:min(len(labels), maxTopologiesOfMember)] {
		volumes, err := s.volumes.ByIndex(topologyIndex, label)
		if err != nil || len(volumes) == 0 {
			continue
		}
		if pv, ok := volumes[0].(*corev1.PersistentVolume); ok {
			all := hostpv.TopologiesOf(pv.Spec.NodeAffinity)
			if i := slices.IndexFunc(all, func(t hostpv.Topology) bool { return t.Label == label }); i >= 0 {
				found = append(found, all[i])
			}
		}
	}
	return found, max(0, len(labels)-maxTopologiesOfMember)
}
