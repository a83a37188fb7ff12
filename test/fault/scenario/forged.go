package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/fault/oracle"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// forged returns the scenarios in which a member's admin creates objects with Xylem's stamp.
func forged() []Scenario {
	return []Scenario{
		{
			Name: "forged", About: "a claim is created, and a member's admin forges its namespace, leaf claim and volume: the claim reports them, and is not placed there",
			Act: func(ctx context.Context, w *World) error {
				if err := w.createClaim(ctx, data, rig.ClassDelete); err != nil {
					return err
				}
				return w.forge(ctx)
			},
			Settled: func(ctx context.Context, w *World) error {
				if err := w.refusedFor(ctx, data, v1alpha1.ReasonAdoptionUnconfirmed); err != nil {
					return err
				}
				claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Host, data)
				if err == nil && (claim.Annotations[v1alpha1.AnnotationPlacedIn] != "" || claim.Status.Phase != corev1.ClaimPending) {
					err = fmt.Errorf("claim %s is %s, and placed in %q, want it Pending and not placed", data, claim.Status.Phase, claim.Annotations[v1alpha1.AnnotationPlacedIn])
				}
				return err
			},
			Restore: do((*World).removeForged),
		},
	}
}

// forgedObjects returns a namespace whose label hands it over to Xylem, a volume, and a claim that
// is bound to the volume. The claim has the root claim's name and stamp.
func (w *World) forgedObjects(root string) []client.Object {
	meta := metav1.ObjectMeta{
		Namespace: w.Namespace, Name: data,
		Labels: map[string]string{v1alpha1.LabelHost: w.IDs[rig.Host], v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue},
		Annotations: map[string]string{
			v1alpha1.AnnotationRoot: w.Namespace + "/" + data, v1alpha1.AnnotationRootUID: root, oracle.AnnotationForged: "true",
		},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace, Labels: map[string]string{v1alpha1.LabelHost: w.IDs[rig.Host]}}}
	pv := &corev1.PersistentVolume{ObjectMeta: *meta.DeepCopy(), Spec: corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: rig.ClassDelete,
		ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: w.Namespace, Name: data},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: controlplane.DefaultDriverName, VolumeHandle: "forged-" + w.Namespace}},
	}}
	pv.Namespace, pv.Name = "", "forged-"+w.Namespace
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: *meta.DeepCopy(), Spec: w.claimSpec(rig.ClassDelete)}
	claim.Spec.VolumeName = pv.Name
	return []client.Object{namespace, pv, claim}
}

func (w *World) forge(ctx context.Context) error {
	root, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Host, data)
	if err != nil {
		return err
	}
	for _, obj := range w.forgedObjects(string(root.UID)) {
		if err := w.Member(rig.Two).API.Create(ctx, obj); err != nil {
			return fmt.Errorf("forge %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return harness.Await(ctx, "the forged claim to be bound", func(ctx context.Context) error {
		claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Member(rig.Two), data)
		if err == nil && claim.Status.Phase != corev1.ClaimBound {
			err = errors.New("the claim is not bound")
		}
		return err
	})
}

// removeForged deletes the forged objects, first the claim.
func (w *World) removeForged(ctx context.Context) error {
	objects := w.forgedObjects("")
	for i := range objects {
		if err := w.delete(ctx, w.Member(rig.Two), objects[len(objects)-1-i]); err != nil {
			return err
		}
	}
	return nil
}
