package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// static returns the scenarios in which an admin adopts an existing volume.
func static() []Scenario {
	return []Scenario{
		{
			Name: "adopt", About: "an admin creates a PersistentVolume for a member's existing disk, and a claim and a Pod use it",
			Setup:   do((*World).before),
			Act:     do((*World).adopt),
			Settled: do((*World).reused),
		},
		{
			Name: "adopt-orphan", About: "an admin creates a PersistentVolume for this host's orphaned disk, and a claim and a Pod use it",
			Setup:   do((*World).orphan),
			Act:     do((*World).adopt),
			Settled: do((*World).reused),
		},
		{
			Name: "adopt-delete", About: "an admin creates a PersistentVolume for an existing disk, and deletes it after the adoption: the disk is kept",
			Setup: do((*World).before),
			Act: func(ctx context.Context, w *World) error {
				if err := w.ask(ctx); err != nil {
					return err
				}
				if err := harness.Await(ctx, "the stamp", w.stamped); err != nil {
					return err
				}
				if err := w.Host.API.Delete(ctx, volume(w.Noted("volume"))); err != nil {
					return fmt.Errorf("delete the admin's volume: %w", err)
				}
				return nil
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(gone[corev1.PersistentVolume](ctx, w, w.Host, w.Noted("volume")),
					w.volumePhase(ctx, w.Noted("volume"), corev1.VolumeReleased, w.Member(rig.One)), w.disks(rig.One, data, 1))
			},
		},
	}
}

// orphan creates a retained volume, and deletes its host PV as an admin would.
func (w *World) orphan(ctx context.Context) error {
	if err := w.released(ctx, rig.ClassRetained); err != nil {
		return err
	}
	if err := w.Host.API.Delete(ctx, volume(w.Noted("volume"))); err != nil {
		return fmt.Errorf("delete the released volume: %w", err)
	}
	return harness.Await(ctx, "the deletion of the host PV", func(ctx context.Context) error {
		return gone[corev1.PersistentVolume](ctx, w, w.Host, w.Noted("volume"))
	})
}

// before creates a disk in the member, independently of Xylem, with the consent of the member's
// admin.
func (w *World) before(ctx context.Context) error {
	if err := w.orphan(ctx); err != nil {
		return err
	}
	body := fmt.Sprintf(`{"metadata":{"labels":{%q:null},"annotations":{%q:null,%q:null,%q:null,%q:null}},"spec":{"claimRef":null}}`,
		v1alpha1.LabelManagedBy, v1alpha1.AnnotationRoot, v1alpha1.AnnotationRootUID, v1alpha1.AnnotationReclaimPolicy, v1alpha1.AnnotationNamespaceUID)
	if err := patch(ctx, w.Member(rig.One), volume(w.Noted("volume")), body); err != nil {
		return err
	}
	return harness.Await(ctx, "the member's own disk to exist", func(ctx context.Context) error {
		return w.volumePhase(ctx, w.Noted("volume"), corev1.VolumeAvailable, w.Member(rig.One))
	})
}

// ask creates the host PV with which an admin requests the disk.
func (w *World) ask(ctx context.Context) error {
	id, err := w.Member(rig.One).ID(ctx)
	if err != nil {
		return fmt.Errorf("read the member's identity: %w", err)
	}
	pv := volume(w.Noted("volume"))
	pv.Spec = corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName:              rig.ClassRetained,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: v1alpha1.ProvisionerName, VolumeHandle: id + "/" + pv.Name,
		}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.LabelClusterID, Operator: corev1.NodeSelectorOpIn, Values: []string{id}}},
		}}}},
	}
	pv.ObjectMeta = metav1.ObjectMeta{Name: pv.Name}
	if err := w.Host.API.Create(ctx, pv); err != nil {
		return fmt.Errorf("create the admin's volume: %w", err)
	}
	return nil
}

// stamped returns nil once the disk has Xylem's stamp.
func (w *World) stamped(ctx context.Context) error {
	leaf, err := get[corev1.PersistentVolume](ctx, w, w.Member(rig.One), w.Noted("volume"))
	if err != nil {
		return err
	}
	if leaf.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
		return fmt.Errorf("volume %s has no stamp yet", leaf.Name)
	}
	return nil
}

// adopt requests the disk and uses it.
func (w *World) adopt(ctx context.Context) error {
	if err := w.ask(ctx); err != nil {
		return err
	}
	name := w.Noted("volume")
	if err := w.createClaim(ctx, data, rig.ClassRetained, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = name }); err != nil {
		return err
	}
	return w.createApp(ctx, rig.NodeOne)
}
