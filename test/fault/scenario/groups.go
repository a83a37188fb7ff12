package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// grouped returns the scenarios about a member that is several nodes in the host.
func grouped() []Scenario {
	return []Scenario{{
		Name: "groups", About: "while a Pod runs, a member becomes several nodes; another Pod runs on one of them; the member becomes one node again",
		Setup: func(ctx context.Context, w *World) error {
			if err := w.up(ctx, rig.ClassDelete); err != nil {
				return err
			}
			pod, err := get[corev1.Pod](ctx, w, w.Host, app)
			if err == nil {
				w.Note("pod", string(pod.UID))
			}
			return err
		},
		Act:     do((*World).divide),
		Settled: do((*World).undivided),
		Restore: func(ctx context.Context, w *World) error { return w.setGroups(ctx, "null") },
	}}
}

const groupedClaim, groupedApp = "grouped-data", "grouped-app"

func (w *World) divide(ctx context.Context) error {
	if err := w.setGroups(ctx, `[{"forEach":{"node":true}}]`); err != nil {
		return err
	}
	group := v1alpha1.GroupNodeName(rig.One+"-node-1", rig.NodeOne)
	if err := harness.Await(ctx, "virtual node "+group, func(ctx context.Context) error { return w.virtualNode(ctx, group) }); err != nil {
		return err
	}
	if err := errors.Join(w.createClaim(ctx, groupedClaim, rig.ClassDelete), w.createPod(ctx, groupedApp, groupedClaim, group)); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the Pod on that node", func(ctx context.Context) error { return w.running(ctx, groupedApp) }); err != nil {
		return err
	}
	return errors.Join(w.setGroups(ctx, "null"),
		w.delete(ctx, w.Host, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: groupedApp}}),
		w.delete(ctx, w.Host, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: groupedClaim}}))
}

func (w *World) setGroups(ctx context.Context, rules string) error {
	return patch(ctx, w.Host, &v1alpha1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Name: rig.One}}, fmt.Sprintf(`{"spec":{"nodes":%s}}`, rules))
}

// virtualNode returns nil if a virtual node exists and accepts Pods.
func (w *World) virtualNode(ctx context.Context, name string) error {
	node, err := get[corev1.Node](ctx, w, w.Host, name)
	if err != nil {
		return err
	}
	if node.Spec.Unschedulable || node.Status.Allocatable.Pods().IsZero() {
		return fmt.Errorf("node %s accepts no Pods: %+v", name, node.Spec)
	}
	return nil
}

// undivided returns nil once the member is one node again, only the first Pod and its claim are left, and it is still
// the same Pod.
func (w *World) undivided(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := w.Host.API.List(ctx, &nodes, client.MatchingLabels{v1alpha1.LabelCluster: rig.One}); err != nil {
		return fmt.Errorf("list the virtual nodes: %w", err)
	}
	if len(nodes.Items) != 1 {
		return fmt.Errorf("the member has %d virtual nodes, want one", len(nodes.Items))
	}
	pod, err := get[corev1.Pod](ctx, w, w.Host, app)
	if err != nil {
		return err
	}
	if string(pod.UID) != w.Noted("pod") {
		return fmt.Errorf("the Pod %s was replaced", app)
	}
	return errors.Join(w.virtualNode(ctx, rig.NodeOne), w.upAndBound(ctx), w.disks(rig.One, groupedClaim, 0),
		w.nothing(ctx, []string{groupedApp, groupedClaim}, w.Clusters()...))
}
