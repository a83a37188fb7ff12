package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// Parts and values of scale.
const (
	partNone       = "no members"
	partIdle       = "idle members"
	partRestart    = "restart"
	partFull       = "all volumes, idle" // skipped if all volumes already exist in the restart part
	heapEach       = "heap KiB per volume"
	heapMember     = "heap MiB per idle member"
	restartSeconds = "restart to settled, s"
	countedSeconds = "restart to all members checked for orphans, s"
	residentMiB    = "resident MiB, peak"
)

// scale measures the manager with many members and many idle volumes. The clusters consist only of
// API servers and etcd. The volumes are created directly in their final state.
func (b *bench) scale(ctx context.Context) error {
	r, err := b.bare(ctx, b.members)
	if err != nil {
		return err
	}
	p := part{scenario: scaleName, repeat: 1}
	if err := r.addWithHeap(ctx, p.run(r, partNone)); err != nil {
		return err
	}
	r.members = b.members
	s, err := r.seeded(ctx)
	if err != nil {
		return err
	}
	if err := r.addWithHeap(ctx, p.run(r, partIdle)); err != nil {
		return err
	}
	idle := r.last(partIdle)
	idle.Values[heapMember] = (idle.Values[heapKiB] - r.last(partNone).Values[heapKiB]) / 1024 / float64(r.members)
	if err := r.filled(ctx, s, partRestart, b.members*b.each); err != nil {
		return err
	}
	if b.volumes > b.members*b.each {
		if err := r.filled(ctx, s, partFull, b.volumes); err != nil {
			return err
		}
	}
	return b.close(ctx)
}

// bare starts clusters that consist only of API servers and etcd, without registrations.
func (b *bench) bare(ctx context.Context, members int) (*rig, error) {
	if err := b.close(ctx); err != nil {
		return nil, err
	}
	host := controlplane.ClusterOptions{Name: "host", APIOnly: true}
	all := make([]controlplane.ClusterOptions, 0, members)
	for i := range members {
		all = append(all, controlplane.ClusterOptions{Name: memberName(i), APIOnly: true})
	}
	b.say("starting a host and %d members with only an API server and etcd", members)
	options := b.harness(host, all)
	if b.memory != "" {
		options.ManagerEnv = []string{"GOMEMLIMIT=" + b.memory}
	}
	x, err := harness.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	r := &rig{b: b, x: x}
	b.now = r
	return r, r.settle(ctx)
}

// seeded prepares a bare rig for objects that are created in their final state, and registers the members.
func (r *rig) seeded(ctx context.Context) (*seeds, error) {
	s, err := newSeeds(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := r.register(ctx); err != nil {
		return nil, err
	}
	return s, r.counted(ctx, 0)
}

// last returns the last run of a part of scale.
func (r *rig) last(part string) *Run {
	runs := r.b.report.find(scaleName, part)
	return runs[len(runs)-1]
}

// filled creates volumes while the manager does not run, starts the manager, and measures it when
// it is idle.
func (r *rig) filled(ctx context.Context, s *seeds, name string, volumes int) error {
	if err := r.x.Manager.Stop(); err != nil {
		return err
	}
	if err := s.fill(ctx, volumes); err != nil {
		return err
	}
	r.b.say("   starting the manager with %d volumes", volumes)
	begin := time.Now()
	if err := r.x.Manager.Start(ctx); err != nil {
		return err
	}
	settled, err := r.settled(ctx, r.members)
	if err != nil {
		return err
	}
	if err := r.counted(ctx, volumes); err != nil {
		return err
	}
	counted := time.Now()
	peak := r.peak() / (1 << 20)
	if err := r.atRest(ctx, part{scenario: scaleName, repeat: 1, claims: volumes}, name); err != nil {
		return err
	}
	run := r.last(name)
	run.Values[restartSeconds] = settled.Sub(begin).Seconds()
	run.Values[countedSeconds] = counted.Sub(begin).Seconds()
	run.Values[residentMiB] = peak
	run.Values[heapEach] = (run.Values[heapKiB] - r.last(partIdle).Values[heapKiB]) / float64(volumes)
	r.b.say("      settled after %.1f s; heap %.1f KiB per volume", run.Values[restartSeconds], run.Values[heapEach])
	return nil
}

// ready creates a Ready Node in a cluster without kubelets. Without it, the member's virtual node
// would have no capacity and would not be Ready.
func ready(ctx context.Context, c *controlplane.Cluster) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-node"}}
	node, err := c.Client().CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a Node in %s: %w", c.Name(), err)
	}
	node.Status = corev1.NodeStatus{
		Capacity: roomy(), Allocatable: roomy(),
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Bench"}},
	}
	if _, err := c.Client().CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("set the Node of %s to Ready: %w", c.Name(), err)
	}
	// The API server taints new Nodes, and the controller that removes the taint does not run
	// here.
	if _, err := c.Client().CoreV1().Nodes().Patch(ctx, node.Name, "application/merge-patch+json", []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("remove the taints of the Node of %s: %w", c.Name(), err)
	}
	return nil
}
