package virtualnode

import (
	"context"
	"fmt"
	"slices"
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

// publishPause is the minimum time between two publications. A publication may cause a write to the Node,
// which every scheduler and kube-proxy watches, and the free capacity of a busy member changes
// several times a second. The delay also limits the CPU time of the sums: one over 10,000 Pods on
// 500 nodes takes 20 ms.
const publishPause = 5 * time.Second

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
	volumes    toolscache.Indexer // set if there are rules
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// SetupCapacity makes a Link publish its member's capacity. The event handlers stop when the Link's caches stop.
func SetupCapacity(link *member.Link) error {
	s := &capacityPublisher{
		nodes: link.Cache, workloads: link.Workloads,
		clock: clock.RealClock{}, publish: link.PublishNodeSummary, changed: make(chan struct{}, 1), urgent: make(chan struct{}, 1),
		rules: link.NodeGroups, memberNode: link.NodeName,
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
		case <-s.urgent: // the change also put a token into changed
		case <-s.clock.After(publishPause):
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
	facts := sumCapacity(list.Items, requested)
	if len(s.rules) > 0 {
		g := grouping{rules: s.rules, memberNode: s.memberNode, requested: requested, topologies: s.topologiesInUse()}
		facts.GroupRules = s.rules
		facts.Groups, facts.GroupProblem = g.groupNodes(list.Items)
	}
	return facts, nil
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
	if err := s.volumes.AddIndexers(toolscache.Indexers{topologyIndex: func(obj any) ([]string, error) {
		var keys []string
		if pv, ok := obj.(*corev1.PersistentVolume); ok {
			for _, t := range hostpv.TopologiesOf(pv.Spec.NodeAffinity) {
				keys = append(keys, t.Label)
			}
		}
		return keys, nil
	}}); err != nil {
		return fmt.Errorf("index the member's volumes by topology: %w", err)
	}
	known := sets.New[string]() // the handlers are called one at a time
	observe := func(obj any) {
		pv, ok := obj.(*corev1.PersistentVolume)
		if !ok {
			return
		}
		for _, t := range hostpv.TopologiesOf(pv.Spec.NodeAffinity) {
			if !known.Has(t.Label) {
				known.Insert(t.Label)
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

// maxTopologies is the maximum number of topologies of a member. It bounds the size of the virtual nodes, because volumes whose
// topology is a single node have as many topologies as the member has nodes.
const maxTopologies = 1000

// topologiesInUse returns the different topologies of the member's volumes that Xylem uses.
func (s *capacityPublisher) topologiesInUse() []hostpv.Topology {
	var found []hostpv.Topology
	labels := slices.Sorted(slices.Values(s.volumes.ListIndexFuncValues(topologyIndex)))
	for _, label := range labels[:min(len(labels), maxTopologies)] {
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
	return found
}
