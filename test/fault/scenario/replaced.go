package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// replaced returns the scenarios in which a leaf PV is re-created with the same name and a different
// UID. As a provisioner would, the scenario creates it without the stamp and with the class's
// policy.
func replaced() []Scenario {
	return []Scenario{
		{
			Name: "replaced-in-use", About: "the leaf PV of a claim in use is re-created with the same name: the disk is kept",
			Setup: func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act:   do((*World).replace),
			Settled: func(ctx context.Context, w *World) error {
				pv, err := get[corev1.PersistentVolume](ctx, w, w.Host, w.Noted("volume"))
				if err != nil {
					return err
				}
				// The leaf claim is Lost until the member's PV controller reconciles it again.
				return errors.Join(held(pv), w.replacement(ctx), w.disks(rig.One, data, 1), w.bound(ctx, data, rig.One))
			},
			Restore: do((*World).clearReplaced),
		},
		{
			Name: "replaced-retain", About: "a leaf PV is re-created with the same name, and its Pod and claim are deleted: with policy Retain in the host, the disk is kept",
			Setup: func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassRetain) },
			Act: func(ctx context.Context, w *World) error {
				if err := w.replace(ctx); err != nil {
					return err
				}
				return w.deletePair(ctx)
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.nothing(ctx, []string{app, data}, w.Host), w.volumePhase(ctx, w.Noted("volume"), corev1.VolumeReleased, w.Host),
					w.replacement(ctx), w.disks(rig.One, data, 1))
			},
			Restore: do((*World).clearReplaced),
		},
		{
			Name: "replaced-away", About: "while the manager is stopped, a leaf PV is re-created with the same name, and its claim is deleted: with policy Retain in the host, the disk is kept",
			Setup: func(ctx context.Context, w *World) error { return w.unused(ctx, rig.ClassRetain) },
			Act: func(ctx context.Context, w *World) error {
				return w.Away(func() error { return errors.Join(w.replace(ctx), w.deleteClaimEntirely(ctx)) })
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.nothing(ctx, []string{app, data}, w.Clusters()...), w.volumePhase(ctx, w.Noted("volume"), corev1.VolumeReleased, w.Host),
					w.replacement(ctx), w.disks(rig.One, data, 1))
			},
			Restore: do((*World).clearReplaced),
		},
		{
			Name: "replaced-delete", About: "a leaf PV is re-created with the same name, and its Pod and claim are deleted: with policy Delete, the host PV is deleted, and the disk is kept as an orphan",
			Setup: func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act: func(ctx context.Context, w *World) error {
				if err := w.replace(ctx); err != nil {
					return err
				}
				return w.deletePair(ctx)
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.nothing(ctx, []string{app, data}, w.Clusters()...), gone[corev1.PersistentVolume](ctx, w, w.Host, w.Noted("volume")),
					w.replacement(ctx), w.disks(rig.One, data, 1))
			},
			Restore: do((*World).clearReplaced),
		},
	}
}

// deleteClaimEntirely deletes the claim in the host and waits until it is gone.
func (w *World) deleteClaimEntirely(ctx context.Context) error {
	if err := w.deleteClaim(ctx); err != nil {
		return err
	}
	return harness.Await(ctx, "the deletion of the claim", func(ctx context.Context) error {
		return gone[corev1.PersistentVolumeClaim](ctx, w, w.Host, data)
	})
}

// replace deletes the leaf PV, removes its finalizers, and re-creates it for the same leaf claim, so
// that the claim recovers.
func (w *World) replace(ctx context.Context) error {
	one := w.Member(rig.One)
	leaf, err := get[corev1.PersistentVolume](ctx, w, one, w.Noted("volume"))
	if err != nil {
		return err
	}
	w.Note("replaced", string(leaf.UID))
	if err := w.delete(ctx, one, leaf); err != nil {
		return err
	}
	if err := patch(ctx, one, volume(leaf.Name), `{"metadata":{"finalizers":null}}`); client.IgnoreNotFound(errors.Unwrap(err)) != nil {
		return err
	}
	if err := harness.Await(ctx, "the deletion of the leaf PV", func(ctx context.Context) error {
		return gone[corev1.PersistentVolume](ctx, w, one, leaf.Name)
	}); err != nil {
		return err
	}
	again := volume(leaf.Name)
	again.Spec = leaf.Spec
	again.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	again.Annotations = map[string]string{annProvisionedBy: leaf.Annotations[annProvisionedBy]}
	if err := one.API.Create(ctx, again); err != nil {
		return fmt.Errorf("re-create leaf PV %s: %w", leaf.Name, err)
	}
	return nil
}

// annProvisionedBy is the provisioner's own annotation.
const annProvisionedBy = "pv.kubernetes.io/provisioned-by"

// replacement returns nil once the leaf PV was replaced and the new one has policy Retain.
func (w *World) replacement(ctx context.Context) error {
	leaf, err := get[corev1.PersistentVolume](ctx, w, w.Member(rig.One), w.Noted("volume"))
	if err != nil {
		return err
	}
	if string(leaf.UID) == w.Noted("replaced") || leaf.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return fmt.Errorf("leaf PV %s has UID %s (before: %s) and policy %s, want a different UID and policy Retain", leaf.Name, leaf.UID, w.Noted("replaced"), leaf.Spec.PersistentVolumeReclaimPolicy)
	}
	return nil
}

// clearReplaced cleans up as an admin would, because Xylem destroys nothing here.
func (w *World) clearReplaced(ctx context.Context) error {
	pv := volume(w.Noted("volume"))
	if err := patch(ctx, w.Host, pv, `{"metadata":{"annotations":{"`+v1alpha1.AnnotationAbandon+`":"true"}}}`); client.IgnoreNotFound(errors.Unwrap(err)) != nil {
		return err
	}
	in := client.InNamespace(w.Namespace)
	return harness.Await(ctx, "the deletion of Pods and claims", func(ctx context.Context) error {
		for _, c := range []*harness.Cluster{w.Host, w.Member(rig.One)} {
			for _, obj := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
				if err := c.API.DeleteAllOf(ctx, obj, in, client.GracePeriodSeconds(0)); err != nil {
					return fmt.Errorf("delete %T in %s: %w", obj, c.Name(), err)
				}
			}
		}
		return w.nothing(ctx, []string{app, data}, w.Host, w.Member(rig.One))
	})
}
