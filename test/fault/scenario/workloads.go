package scenario

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
			Setup:   func(ctx context.Context, w *World) error { return w.statefulSet(ctx) },
			Act:     func(ctx context.Context, w *World) error { return w.evict(ctx, replica(0)) },
			Settled: do((*World).returned),
		},
		{
			Name: "protect", About: "a StatefulSet's budget allows one disruption: while one leaf Pod is evicted and replaced, the other is not evicted. Then the budget is deleted",
			Setup: func(ctx context.Context, w *World) error { return w.statefulSet(ctx) },
			Act: func(ctx context.Context, w *World) error {
				budget := &policyv1.PodDisruptionBudget{
					ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: set},
					Spec: policyv1.PodDisruptionBudgetSpec{
						MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": set}},
					},
				}
				if err := w.Host.API.Create(ctx, budget); err != nil {
					return fmt.Errorf("create the budget: %w", err)
				}
				if err := harness.Await(ctx, "the member to enforce the budget", w.protected); err != nil {
					return err
				}
				if err := w.evict(ctx, replica(0)); err != nil {
					return err
				}
				if err := w.evict(ctx, replica(1)); !apierrors.IsTooManyRequests(err) {
					return fmt.Errorf("the second eviction: got error %w, want a refusal by the budget", err)
				}
				if err := harness.Await(ctx, "the evicted Pod to be replaced", w.returned); err != nil {
					return err
				}
				if err := w.Host.API.Delete(ctx, budget); err != nil {
					return fmt.Errorf("delete the budget: %w", err)
				}
				return nil
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.returned(ctx), gone[policyv1.PodDisruptionBudget](ctx, w, w.Member(rig.One), set))
			},
		},
	}
}

// evict evicts a leaf Pod.
func (w *World) evict(ctx context.Context, name string) error {
	member := w.Member(rig.One)
	pod, err := get[corev1.Pod](ctx, w, member, name)
	if err != nil {
		return err
	}
	if w.Noted("evicted") == "" {
		w.Note("evicted", string(pod.UID))
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	if err := member.API.SubResource("eviction").Create(ctx, pod, eviction); err != nil {
		return fmt.Errorf("evict %s: %w", name, err)
	}
	return nil
}

// protected returns nil once the member allows exactly one eviction of the replicas.
func (w *World) protected(ctx context.Context) error {
	budget, err := get[policyv1.PodDisruptionBudget](ctx, w, w.Member(rig.One), set)
	if err != nil {
		return err
	}
	if budget.Spec.MinAvailable.IntVal != replicas-1 || budget.Status.DisruptionsAllowed != 1 || budget.Status.ObservedGeneration != budget.Generation {
		return fmt.Errorf("the leaf budget requires %d Pods and allows %d disruptions", budget.Spec.MinAvailable.IntVal, budget.Status.DisruptionsAllowed)
	}
	return nil
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
