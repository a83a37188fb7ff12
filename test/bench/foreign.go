package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Parts and values of foreign.
const (
	partBefore       = "no other objects"
	partHostPods     = "Pods on the host's own nodes"
	partMemberPods   = "a member's other Pods"
	partMemberEvents = "a member's events about them"
	partOneNode      = "a member's nodes, shown as one node"
	partManyNodes    = "a member's nodes, each shown as a node"

	heapForeign   = "heap KiB for each"
	residentGrown = "resident MiB, growth of the peak"
	cpuForeign    = "CPU ms for a status change"
	cpuIdle       = "CPU ms per second, idle"

	// foreignSpace is the namespace of objects that do not concern Xylem.
	foreignSpace = "foreign"
	// nodesEach is the number of the member's nodes for the last two parts.
	nodesEach = 300
	// eventsEach is the number of Warning events about each of the member's other Pods.
	eventsEach = 6
	// changesEach is the number of status changes per second.
	changesEach = 50
)

// foreign measures what objects cost with which Xylem has nothing to do. The clusters consist only of
// API servers and etcd, and their admission policies are disabled.
func (b *bench) foreign(ctx context.Context) error {
	r, err := b.bare(ctx, 1)
	if err != nil {
		return err
	}
	r.members = 1
	s, err := r.seeded(ctx)
	if err != nil {
		return err
	}
	member := s.members[0].client
	for _, c := range []kubernetes.Interface{s.host, member} {
		if _, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: foreignSpace}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create namespace %s: %w", foreignSpace, err)
		}
		// The controller that creates it does not run here.
		if _, err := c.CoreV1().ServiceAccounts(foreignSpace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create the service account of namespace %s: %w", foreignSpace, err)
		}
	}
	if err := r.crowd(ctx, partBefore, 0, func(context.Context, int) error { return nil }); err != nil {
		return err
	}
	if err := r.crowd(ctx, partHostPods, b.others, func(ctx context.Context, i int) error { return foreignPod(ctx, s.host, i) }); err != nil {
		return err
	}
	if err := r.statusChanges(ctx, s.host); err != nil {
		return err
	}
	if err := r.crowd(ctx, partMemberPods, b.others, func(ctx context.Context, i int) error { return foreignPod(ctx, member, i) }); err != nil {
		return err
	}
	if err := r.crowd(ctx, partMemberEvents, eventsEach*b.others, func(ctx context.Context, i int) error { return foreignEvent(ctx, member, i) }); err != nil {
		return err
	}
	if err := r.nodesOf(ctx, s.host, member); err != nil {
		return err
	}
	return b.close(ctx)
}

// nodesOf measures an idle manager while the host shows a member's nodes as one node, and then as many. The difference
// includes the renewal of each node's Lease every ten seconds.
func (r *rig) nodesOf(ctx context.Context, host, member kubernetes.Interface) error {
	if err := r.crowd(ctx, partOneNode, nodesEach, func(ctx context.Context, i int) error { return readyNode(ctx, member, i) }); err != nil {
		return err
	}
	if err := r.idle(ctx, partOneNode); err != nil {
		return err
	}
	registration := &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: memberName(0)}}
	rules := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"nodes":[{"forEach":{"node":true}}]}}`))
	if err := r.x.Host.API.Patch(ctx, registration, rules); err != nil {
		return fmt.Errorf("set spec.nodes: %w", err)
	}
	if err := r.await(ctx, "the virtual nodes", nodesEach, func() int {
		list, err := host.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelNodeGroup})
		if err != nil {
			return 0
		}
		return len(list.Items)
	}); err != nil {
		return err
	}
	if err := r.crowd(ctx, partManyNodes, 0, func(context.Context, int) error { return nil }); err != nil {
		return err
	}
	return r.idle(ctx, partManyNodes)
}

// idle measures the manager's CPU time while nothing changes.
func (r *rig) idle(ctx context.Context, name string) error {
	before, err := r.metrics(ctx)
	if err != nil {
		return err
	}
	if err := paced(ctx, r.b.rest, func(int) error { return nil }); err != nil {
		return err
	}
	after, err := r.metrics(ctx)
	if err != nil {
		return err
	}
	run := r.b.report.find(foreignName, name)[0]
	run.Values[cpuIdle] = (after.cpu() - before.cpu()) * 1000 / r.b.rest.Seconds()
	r.b.say("      idle: CPU %.1f ms per second", run.Values[cpuIdle])
	return nil
}

// readyNode creates a node of the member as a kubelet reports it.
func readyNode(ctx context.Context, member kubernetes.Interface, i int) error {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%03d", i), Labels: map[string]string{corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3)}},
		Status: corev1.NodeStatus{
			Capacity: roomy(), Allocatable: roomy(), NodeInfo: corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux"},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}
	if _, err := member.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create node %s: %w", node.Name, err)
	}
	// The API server taints new Nodes, and the controller that removes the taint does not run here.
	_, err := member.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
	return err
}

// crowd creates objects, and measures how much memory the manager needs for them.
func (r *rig) crowd(ctx context.Context, name string, count int, create func(context.Context, int) error) error {
	before, err := r.heap(ctx)
	if err != nil {
		return err
	}
	r.resetPeak()
	resident := r.peak()
	run := part{scenario: foreignName, repeat: 1}.run(r, name)
	r.b.say("   creating %d objects: %s", count, name)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(sowers)
	for i := 0; i < count && groupCtx.Err() == nil; i++ {
		group.Go(func() error { return create(groupCtx, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	run.Values[residentGrown] = (r.peak() - resident) / (1 << 20)
	if err := r.addWithHeap(ctx, run); err != nil {
		return err
	}
	if count > 0 {
		run.Values[heapForeign] = (run.Values[heapKiB] - before/1024) / float64(count)
		r.b.say("      heap %.2f KiB for each", run.Values[heapForeign])
	}
	return nil
}

// statusChanges measures the manager's CPU time for status changes of Pods on the host's own nodes, minus that of the
// same time without changes.
func (r *rig) statusChanges(ctx context.Context, host kubernetes.Interface) error {
	spent := func(change func(context.Context) error) (float64, error) {
		before, err := r.metrics(ctx)
		if err != nil {
			return 0, err
		}
		if err := change(ctx); err != nil {
			return 0, err
		}
		after, err := r.metrics(ctx)
		return after.cpu() - before.cpu(), err
	}
	idle, err := spent(func(ctx context.Context) error { return paced(ctx, r.b.rest, func(int) error { return nil }) })
	if err != nil {
		return err
	}
	changes := 0
	busy, err := spent(func(ctx context.Context) error {
		return paced(ctx, r.b.rest, func(i int) error {
			changes++
			patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","message":"change %d"}]}}`, i)
			_, err := host.CoreV1().Pods(foreignSpace).Patch(ctx, foreignObject(i%r.b.others), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
			return err
		})
	})
	if err != nil {
		return err
	}
	run := r.b.report.find(foreignName, partHostPods)[0]
	run.Values[cpuForeign] = (busy - idle) * 1000 / float64(changes)
	r.b.say("      CPU %.2f ms for each of %d status changes", run.Values[cpuForeign], changes)
	return nil
}

// paced calls do changesEach times per second for some time.
func paced(ctx context.Context, during time.Duration, do func(i int) error) error {
	ticker := time.NewTicker(time.Second / changesEach)
	defer ticker.Stop()
	end := time.Now().Add(during)
	for i := 0; time.Now().Before(end); i++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

// foreignPod creates a Pod on a node that is not virtual, with a status like a kubelet's. It has about 8 KiB in JSON.
func foreignPod(ctx context.Context, client kubernetes.Interface, i int) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: foreignSpace, Name: foreignObject(i), Labels: map[string]string{"app": "other", "instance": fmt.Sprint(i)}},
		Spec:       corev1.PodSpec{NodeName: fmt.Sprintf("worker-%03d", i%100)},
	}
	for c := range 3 {
		container := corev1.Container{Name: fmt.Sprint("c", c), Image: "registry.example.com/team/service:v1.2.3", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}}}
		for e := range 15 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", e), Value: strings.Repeat("v", 24)})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	made, err := client.CoreV1().Pods(foreignSpace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create Pod %s: %w", pod.Name, err)
	}
	made.Status = corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "192.0.2.1", PodIP: "198.51.100.1", PodIPs: []corev1.PodIP{{IP: "198.51.100.1"}}, HostIPs: []corev1.HostIP{{IP: "192.0.2.1"}}}
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		made.Status.Conditions = append(made.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	for _, c := range made.Spec.Containers {
		made.Status.ContainerStatuses = append(made.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Ready: true, Image: c.Image, ImageID: c.Image + "@sha256:" + strings.Repeat("0", 64), ContainerID: "containerd://" + strings.Repeat("0", 64),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		})
	}
	if _, err := client.CoreV1().Pods(foreignSpace).UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("set the status of Pod %s: %w", pod.Name, err)
	}
	return nil
}

// foreignEvent creates a Warning event about one of the member's other Pods, as for a crash-looping container.
func foreignEvent(ctx context.Context, client kubernetes.Interface, i int) error {
	name := foreignObject(i / eventsEach)
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: foreignSpace, Name: fmt.Sprintf("%s.%x", name, i)},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: foreignSpace, Name: name, UID: types.UID(fmt.Sprintf("%036d", i/eventsEach))},
		Type:           corev1.EventTypeWarning, Reason: "BackOff", Source: corev1.EventSource{Component: "kubelet", Host: "worker"}, Count: 1,
		Message:        fmt.Sprintf("Back-off restarting failed container c%d in pod %s_%s", i%3, name, foreignSpace),
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}
	if _, err := client.CoreV1().Events(foreignSpace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create event %s: %w", event.Name, err)
	}
	return nil
}

func foreignObject(i int) string { return fmt.Sprintf("other-7d9c5b8f64-%05d", i) }
