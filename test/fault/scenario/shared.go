package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// reader is a Pod in the second member that uses the claim.
const reader = "reader"

// shared returns the scenarios of a volume that Pods in both members use. The first member owns it.
func shared() []Scenario {
	return []Scenario{
		{
			Name: "shared-use", About: "a Pod in a second member uses a shared volume: the member gets a copy",
			Setup: do((*World).upShared),
			Act:   do((*World).createReader),
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.running(ctx, app, reader), w.hasCopies(ctx, 1), w.disks(rig.One, data, 1), w.disks(rig.Two, data, 0))
			},
		},
		{
			Name: "shared-end", About: "the claim and all Pods of a shared volume are deleted: the copy is removed, then the disk is destroyed",
			Setup: func(ctx context.Context, w *World) error {
				if err := w.upShared(ctx); err != nil {
					return err
				}
				if err := w.createReader(ctx); err != nil {
					return err
				}
				return harness.Await(ctx, "the Pod in the second member", func(ctx context.Context) error { return w.running(ctx, reader) })
			},
			Act: func(ctx context.Context, w *World) error {
				pod := &corev1.Pod{}
				pod.Namespace, pod.Name = w.Namespace, reader
				return errors.Join(w.delete(ctx, w.Host, pod), w.deletePair(ctx))
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.nothing(ctx, []string{app, reader, data}, w.Clusters()...), w.hasCopies(ctx, 0), w.disks(rig.One, data, 0),
					gone[corev1.PersistentVolume](ctx, w, w.Host, w.Noted("volume")))
			},
		},
	}
}

// upShared creates a claim that several nodes may use, and a Pod in the first member.
func (w *World) upShared(ctx context.Context) error {
	err := w.createClaim(ctx, data, rig.ClassDelete, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	})
	if err != nil {
		return err
	}
	if err := w.createApp(ctx, rig.NodeOne); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the Pod in the first member", w.upAndBound); err != nil {
		return err
	}
	name, err := w.volumeOf(ctx, data)
	w.Note("volume", name)
	return err
}

func (w *World) createReader(ctx context.Context) error {
	return w.createPod(ctx, reader, data, rig.NodeTwo)
}

// hasCopies returns nil once the second member has this number of copies of the volume.
func (w *World) hasCopies(ctx context.Context, want int) error {
	copies, err := w.Member(rig.Two).CopiesOf(ctx, w.Noted("volume"))
	if err != nil {
		return err //nolint:wrapcheck // names the cluster
	}
	if len(copies) != want {
		return fmt.Errorf("the second member has %d copies of volume %s, want %d", len(copies), w.Noted("volume"), want)
	}
	return nil
}
