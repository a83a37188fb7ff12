package scenario

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

const (
	set      = "set"
	replicas = 2
)

// workloads returns the scenarios in which a controller re-creates Pods.
func workloads() []Scenario {
	return []Scenario{
		{
			Name: "scale", About: "a StatefulSet is scaled down and up again: each replica keeps its disk",
			Setup: func(ctx context.Context, w *World) error { return w.statefulSet(ctx) },
			Act: func(ctx context.Context, w *World) error {
				if err := w.scale(ctx, 0); err != nil {
					return err
				}
				if err := harness.Await(ctx, "the deletion of the replicas", func(ctx context.Context) error {
					return errors.Join(gone[corev1.Pod](ctx, w, w.Host, replica(0)), gone[corev1.Pod](ctx, w, w.Host, replica(1)))
				}); err != nil {
					return err
				}
				return w.scale(ctx, replicas)
			},
			Settled: do((*World).scaled),
		},
		{
			Name: "evict", About: "a StatefulSet's leaf Pod is evicted in its member: the StatefulSet re-creates the Pod there",
			Setup: func(ctx context.Context, w *World) error { return w.statefulSet(ctx) },
			Act: func(ctx context.Context, w *World) error {
				member := w.Member(rig.One)
				pod, err := get[corev1.Pod](ctx, w, member, replica(0))
				if err != nil {
					return err
				}
				w.Note("evicted", string(pod.UID))
				eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: pod.Name}}
				if err := member.API.SubResource("eviction").Create(ctx, pod, eviction); err != nil {
					return fmt.Errorf("evict %s: %w", pod.Name, err)
				}
				return nil
			},
			Settled: do((*World).returned),
		},
	}
}

func replica(i int) string { return fmt.Sprintf("%s-%d", set, i) }

func claimOf(i int) string { return data + "-" + replica(i) }

func (w *World) statefulSet(ctx context.Context) error {
	labels := map[string]string{"app": set}
	object := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: set},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](replicas), ServiceName: set, PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:             &metav1.LabelSelector{MatchLabels: labels},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(rig.NodeOne)},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: data}, Spec: w.claimSpec(rig.ClassDelete)}},
		},
	}
	if err := w.Host.API.Create(ctx, object); err != nil {
		return fmt.Errorf("create StatefulSet %s: %w", set, err)
	}
	if err := harness.Await(ctx, "the StatefulSet to run", w.replicas); err != nil {
		return err
	}
	for i := range replicas {
		volume, err := w.volumeOf(ctx, claimOf(i))
		if err != nil {
			return err
		}
		w.Note(claimOf(i), volume)
	}
	return nil
}

func (w *World) scale(ctx context.Context, to int) error {
	object := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: set}}
	return patch(ctx, w.Host, object, fmt.Sprintf(`{"spec":{"replicas":%d}}`, to))
}

func (w *World) replicas(ctx context.Context) error {
	for i := range replicas {
		if err := errors.Join(w.running(ctx, replica(i)), w.bound(ctx, claimOf(i), rig.One), w.disks(rig.One, claimOf(i), 1)); err != nil {
			return err
		}
	}
	return nil
}

// scaled returns nil once the replicas run with their original disks.
func (w *World) scaled(ctx context.Context) error {
	if err := w.replicas(ctx); err != nil {
		return err
	}
	for i := range replicas {
		volume, err := w.volumeOf(ctx, claimOf(i))
		if err != nil {
			return err
		}
		if had := w.Noted(claimOf(i)); volume != had {
			return fmt.Errorf("claim %s is bound to %s, but was bound to %s before", claimOf(i), volume, had)
		}
	}
	return nil
}

// returned returns nil once the evicted leaf Pod has been replaced.
func (w *World) returned(ctx context.Context) error {
	pod, err := get[corev1.Pod](ctx, w, w.Member(rig.One), replica(0))
	if err != nil {
		return err
	}
	if string(pod.UID) == w.Noted("evicted") {
		return fmt.Errorf("leaf Pod %s is still the one that was evicted", pod.Name)
	}
	return w.scaled(ctx)
}
