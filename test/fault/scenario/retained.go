package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// retained returns the scenarios about volumes that are kept, or that fail to be reclaimed.
func retained() []Scenario {
	return []Scenario{
		{
			Name: "retain", About: "a Pod and its claim are deleted, with policy Retain in the host", Core: true,
			Setup:   func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassRetain) },
			Act:     do((*World).deletePair),
			Settled: do((*World).kept),
		},
		{
			Name: "retain-member", About: "a Pod and its claim are deleted, with policy Retain only in the member's class",
			Setup:   func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassRetained) },
			Act:     do((*World).deletePair),
			Settled: do((*World).kept),
		},
		{
			Name: "reuse", About: "a new claim uses a retained volume after its claimRef is cleared",
			Setup:   func(ctx context.Context, w *World) error { return w.released(ctx, rig.ClassRetain) },
			Act:     func(ctx context.Context, w *World) error { return w.reuse(ctx, rig.ClassRetain) },
			Settled: do((*World).reused),
		},
		{
			Name: "reuse-member", About: "a new claim uses a retained volume after its claimRef is cleared, with policy Retain only in the member's class",
			Setup:   func(ctx context.Context, w *World) error { return w.released(ctx, rig.ClassRetained) },
			Act:     func(ctx context.Context, w *World) error { return w.reuse(ctx, rig.ClassRetained) },
			Settled: do((*World).reused),
		},
		{
			Name: "recreate-retain", About: "a Pod and its claim are deleted and re-created: the new claim has a new disk, and the old disk is kept",
			Setup: func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassRetain) },
			Act:   func(ctx context.Context, w *World) error { return w.recreate(ctx, rig.ClassRetain) },
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.running(ctx, app), w.bound(ctx, data, rig.One), w.disks(rig.One, data, 2),
					w.volumePhase(ctx, w.Noted("volume"), corev1.VolumeReleased, w.Host, w.Member(rig.One)))
			},
		},
		{
			Name: "abandon", About: "an admin abandons a retained volume",
			Setup: func(ctx context.Context, w *World) error { return w.released(ctx, rig.ClassRetain) },
			Act: func(ctx context.Context, w *World) error {
				return patch(ctx, w.Host, volume(w.Noted("volume")), `{"metadata":{"annotations":{"`+v1alpha1.AnnotationAbandon+`":"true"}}}`)
			},
			Settled: do((*World).abandoned),
		},
		{
			Name: "retain-late", About: "a Pod and its claim are deleted immediately after the host PV was set to Retain",
			Setup: func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act: func(ctx context.Context, w *World) error {
				if err := patch(ctx, w.Host, volume(w.Noted("volume")), `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`); err != nil {
					return err
				}
				return w.deletePair(ctx)
			},
			Settled: do((*World).kept),
		},
		{
			Name: "delete-failed", About: "a Pod and its claim are deleted, and the host PV becomes Failed because of policy Recycle: then an admin sets it to Delete",
			Setup:   func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act:     do((*World).failReclaim),
			Settled: do((*World).destroyed),
		},
	}
}

// failReclaim deletes the pair while the host PV has a policy that the PV controller does not
// support. Then it sets policy Delete.
func (w *World) failReclaim(ctx context.Context) error {
	host := volume(w.Noted("volume"))
	if err := patch(ctx, w.Host, host, `{"spec":{"persistentVolumeReclaimPolicy":"Recycle"}}`); err != nil {
		return err
	}
	if err := w.deletePair(ctx); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the PV to fail", func(ctx context.Context) error {
		return w.volumePhase(ctx, host.Name, corev1.VolumeFailed, w.Host)
	}); err != nil {
		return err
	}
	return patch(ctx, w.Host, host, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
}

// released calls up, deletes the pair, and waits until its volume is Released.
func (w *World) released(ctx context.Context, class string) error {
	if err := w.up(ctx, class); err != nil {
		return err
	}
	if err := w.deletePair(ctx); err != nil {
		return err
	}
	return harness.Await(ctx, "the volume to be Released", w.kept)
}

// kept returns nil once the pair is deleted, the volume is Released on both sides, and its disk
// exists.
func (w *World) kept(ctx context.Context) error {
	if err := w.nothing(ctx, []string{app, data}, w.Clusters()...); err != nil {
		return err
	}
	return errors.Join(
		w.volumePhase(ctx, w.Noted("volume"), corev1.VolumeReleased, w.Host, w.Member(rig.One)),
		w.disks(rig.One, data, 1))
}

// reuse clears the volume's claimRef, and creates a claim that names the volume.
func (w *World) reuse(ctx context.Context, class string) error {
	name := w.Noted("volume")
	if err := patch(ctx, w.Host, volume(name), `{"spec":{"claimRef":null}}`); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the volume to be Available", func(ctx context.Context) error {
		return w.volumePhase(ctx, name, corev1.VolumeAvailable, w.Host)
	}); err != nil {
		return err
	}
	if err := w.createClaim(ctx, data, class, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = name }); err != nil {
		return err
	}
	return w.createApp(ctx, rig.NodeOne)
}

func (w *World) reused(ctx context.Context) error {
	if err := w.upAndBound(ctx); err != nil {
		return err
	}
	name, err := w.volumeOf(ctx, data)
	if err != nil {
		return err
	}
	if name != w.Noted("volume") {
		return fmt.Errorf("the claim is bound to %s, want %s", name, w.Noted("volume"))
	}
	return w.volumePhase(ctx, name, corev1.VolumeBound, w.Host, w.Member(rig.One))
}

// abandoned returns nil once the host has no record of the volume, but its data still exists.
func (w *World) abandoned(ctx context.Context) error {
	if err := gone[corev1.PersistentVolume](ctx, w, w.Host, w.Noted("volume")); err != nil {
		return err
	}
	return errors.Join(w.volumePhase(ctx, w.Noted("volume"), corev1.VolumeReleased, w.Member(rig.One)), w.disks(rig.One, data, 1))
}
