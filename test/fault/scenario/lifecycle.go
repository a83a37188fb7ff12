package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// The names that scenarios use.
const (
	app  = "app"
	data = "data"
)

// lifecycle returns the scenarios about the life of one claim and its Pod.
func lifecycle() []Scenario {
	return []Scenario{
		{
			Name: "create", About: "a claim and its Pod are created; the member's class waits for a consumer", Core: true,
			Act:     func(ctx context.Context, w *World) error { return w.pair(ctx, rig.ClassDelete) },
			Settled: do((*World).upAndBound),
		},
		{
			Name: "create-immediate", About: "a claim and its Pod are created; the member's class binds immediately",
			Act:     func(ctx context.Context, w *World) error { return w.pair(ctx, rig.ClassImmediate) },
			Settled: do((*World).upAndBound),
		},
		{
			Name: "grow", About: "a claim in use requests more capacity",
			Setup: func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act: func(ctx context.Context, w *World) error {
				return patch(ctx, w.Host, w.claim(), `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
			},
			Settled: do((*World).grown),
		},
		{
			Name: "delete", About: "a Pod and its claim with policy Delete are deleted", Core: true,
			Setup:   func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act:     do((*World).deletePair),
			Settled: do((*World).destroyed),
		},
		{
			Name: "delete-claim-first", About: "a claim is deleted while its Pod still runs, and then the Pod is deleted",
			Setup: func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act: func(ctx context.Context, w *World) error {
				return errors.Join(w.deleteClaim(ctx), w.deleteApp(ctx))
			},
			Settled: do((*World).destroyed),
		},
		{
			Name: "delete-pod", About: "a Pod is deleted, and another Pod with the same name uses the same claim",
			Setup: func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act: func(ctx context.Context, w *World) error {
				if err := w.endApp(ctx); err != nil {
					return err
				}
				return w.createApp(ctx, rig.NodeOne)
			},
			Settled: do((*World).upAndBound),
		},
		{
			Name: "recreate", About: "a Pod and its claim are deleted and immediately re-created with the same names",
			Setup:   func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act:     func(ctx context.Context, w *World) error { return w.recreate(ctx, rig.ClassDelete) },
			Settled: do((*World).recreated),
		},
	}
}

// pair creates a claim and a Pod that uses it.
func (w *World) pair(ctx context.Context, class string) error {
	if err := w.createClaim(ctx, data, class); err != nil {
		return err
	}
	return w.createApp(ctx, rig.NodeOne)
}

// up calls pair, and waits until the Pod runs.
func (w *World) up(ctx context.Context, class string) error {
	if err := w.pair(ctx, class); err != nil {
		return err
	}
	if err := harness.Await(ctx, "claim and Pod", w.upAndBound); err != nil {
		return err
	}
	volume, err := w.volumeOf(ctx, data)
	w.Note("volume", volume)
	return err
}

// unused calls up, and then deletes the Pod.
func (w *World) unused(ctx context.Context, class string) error {
	if err := w.up(ctx, class); err != nil {
		return err
	}
	return w.endApp(ctx)
}

func (w *World) upAndBound(ctx context.Context) error {
	if err := w.running(ctx, app); err != nil {
		return err
	}
	return errors.Join(w.bound(ctx, data, rig.One), w.disks(rig.One, data, 1))
}

func (w *World) deletePair(ctx context.Context) error {
	return errors.Join(w.deleteApp(ctx), w.deleteClaim(ctx))
}

// endApp deletes the Pod and waits until it is gone.
func (w *World) endApp(ctx context.Context) error {
	if err := w.deleteApp(ctx); err != nil {
		return err
	}
	return harness.Await(ctx, "the deletion of Pod "+app, func(ctx context.Context) error {
		return gone[corev1.Pod](ctx, w, w.Host, app)
	})
}

// destroyed returns nil once no objects of the pair, and none of its volume, are left.
func (w *World) destroyed(ctx context.Context) error {
	clusters := w.Clusters()
	if err := w.nothing(ctx, []string{app, data}, clusters...); err != nil {
		return err
	}
	for _, c := range clusters {
		if err := gone[corev1.PersistentVolume](ctx, w, c, w.Noted("volume")); err != nil {
			return err
		}
	}
	return w.disks(rig.One, data, 0)
}

// reported returns the conditions of a claim except Unused, which kube-controller-manager sets from
// Kubernetes 1.37 on.
func reported(claim *corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaimCondition {
	return slices.DeleteFunc(slices.Clone(claim.Status.Conditions), func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimUnused
	})
}

func (w *World) grown(ctx context.Context) error {
	want := resource.MustParse("2Gi")
	claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Host, data)
	if err != nil {
		return err
	}
	if claim.Status.Capacity.Storage().Cmp(want) != 0 || len(reported(claim)) > 0 || len(claim.Status.AllocatedResourceStatuses) > 0 {
		return fmt.Errorf("claim %s has capacity %s and conditions %v, want %s", data, claim.Status.Capacity.Storage(), claim.Status.Conditions, &want)
	}
	pv, err := get[corev1.PersistentVolume](ctx, w, w.Host, claim.Spec.VolumeName)
	if err != nil {
		return err
	}
	if pv.Spec.Capacity.Storage().Cmp(want) != 0 {
		return fmt.Errorf("volume %s has capacity %s, want %s", pv.Name, pv.Spec.Capacity.Storage(), &want)
	}
	return w.upAndBound(ctx)
}

func (w *World) recreate(ctx context.Context, class string) error {
	if err := w.deletePair(ctx); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the deletion of the first pair in the host", func(ctx context.Context) error {
		return w.nothing(ctx, []string{app, data}, w.Host)
	}); err != nil {
		return err
	}
	return w.pair(ctx, class)
}

// recreated returns nil once the new claim has a new disk and the old disk is deleted.
func (w *World) recreated(ctx context.Context) error {
	if err := w.upAndBound(ctx); err != nil {
		return err
	}
	for _, c := range w.Clusters() {
		if err := gone[corev1.PersistentVolume](ctx, w, c, w.Noted("volume")); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: data}}
}

func volume(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
