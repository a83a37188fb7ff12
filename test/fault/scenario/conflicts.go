package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/controlplane/csidriver"
	"github.com/xylem-io/xylem/test/controlplane/ledger"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/integration/harness"
)

// slow is the name of a claim whose disk is delayed, and of its Pod.
const slow = "slow"

// conflicts returns the scenarios about names that are taken, delayed disks, clones, lost leaves
// and access modes.
func conflicts() []Scenario {
	return []Scenario{
		{
			Name: "volume-name-taken", About: "the host already has a PV with the leaf PV's name: the host PV gets another name",
			Setup: func(ctx context.Context, w *World) error { return w.provisioning(ctx, rig.ClassDelete, false) },
			Act:   do((*World).takeVolumeName),
			Settled: func(ctx context.Context, w *World) error {
				foreign, err := get[corev1.PersistentVolume](ctx, w, w.Host, w.Noted("foreign"))
				if err != nil {
					return err
				}
				if name, err := w.volumeOf(ctx, data); err != nil || name == foreign.Name {
					return errors.Join(err, fmt.Errorf("the claim is bound to %q, want a PV of its own", name))
				}
				return w.upAndBound(ctx)
			},
			Restore: func(ctx context.Context, w *World) error {
				return errors.Join(w.Member(rig.One).SetFaults(), w.delete(ctx, w.Host, volume(w.Noted("foreign"))))
			},
		},
		{
			Name: "side-by-side", About: "one claim's disk is delayed: another claim is provisioned in the meantime",
			Act:     do((*World).sideBySide),
			Settled: func(ctx context.Context, w *World) error { return errors.Join(w.upAndBound(ctx), w.running(ctx, slow)) },
			Restore: do((*World).provision),
		},
		{
			Name: "data-source", About: "a claim is cloned: one disk is created, in the source's member, with the source's data",
			Setup: func(ctx context.Context, w *World) error { return w.up(ctx, rig.ClassDelete) },
			Act: func(ctx context.Context, w *World) error {
				err := w.createClaim(ctx, slow, rig.ClassDelete, func(c *corev1.PersistentVolumeClaim) {
					c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: data}
				})
				if err != nil {
					return err
				}
				return w.createPod(ctx, slow, slow, rig.NodeOne)
			},
			Settled: func(ctx context.Context, w *World) error {
				return errors.Join(w.running(ctx, slow), w.disks(rig.One, slow, 1), w.copied(rig.One, data, slow))
			},
		},
		{
			Name: "lost-leaf-volume", About: "a member's admin deletes a leaf claim and its leaf PV: Xylem does not replace them, and the host keeps its PV",
			Setup: func(ctx context.Context, w *World) error { return w.unused(ctx, rig.ClassDelete) },
			Act:   do((*World).loseLeaf),
			Settled: func(ctx context.Context, w *World) error {
				pv, err := get[corev1.PersistentVolume](ctx, w, w.Host, w.Noted("volume"))
				if err != nil {
					return err
				}
				return errors.Join(held(pv), w.refusedFor(ctx, data, "VolumeLost"), gone[corev1.PersistentVolumeClaim](ctx, w, w.Member(rig.One), data))
			},
			Restore: do((*World).destroyLost),
		},
		{
			Name: "one-pod", About: "a claim with access mode ReadWriteOncePod and its Pod are created",
			Act: func(ctx context.Context, w *World) error {
				err := w.createClaim(ctx, data, rig.ClassDelete, func(c *corev1.PersistentVolumeClaim) {
					c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
				})
				if err != nil {
					return err
				}
				return w.createApp(ctx, rig.NodeOne)
			},
			Settled: do((*World).upAndBound),
		},
	}
}

// takeVolumeName creates a PV with the name of the future leaf PV, and then lets the provisioner
// continue.
func (w *World) takeVolumeName(ctx context.Context) error {
	leaf, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Member(rig.One), data)
	if err != nil {
		return err
	}
	foreign := volume("pvc-" + string(leaf.UID))
	foreign.Spec = corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: "foreign",
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "foreign.example.com", VolumeHandle: "1"}},
	}
	if err := w.Host.API.Create(ctx, foreign); err != nil {
		return fmt.Errorf("create the conflicting volume: %w", err)
	}
	w.Note("foreign", foreign.Name)
	return w.Member(rig.One).SetFaults()
}

// sideBySide delays the slow claim's disk until the other claim's Pod runs.
func (w *World) sideBySide(ctx context.Context) error {
	if err := w.Member(rig.One).SetFaults(csidriver.Fault{Method: ledger.CreateVolume, Claim: w.Namespace + "/" + slow, Stall: true}); err != nil {
		return err
	}
	if err := errors.Join(w.createClaim(ctx, slow, rig.ClassDelete), w.createPod(ctx, slow, slow, rig.NodeOne)); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the slow claim to exist in the member", func(ctx context.Context) error {
		_, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Member(rig.One), slow)
		return err
	}); err != nil {
		return err
	}
	if err := w.pair(ctx, rig.ClassDelete); err != nil {
		return err
	}
	if err := harness.Await(ctx, "the other claim's Pod to run", w.upAndBound); err != nil {
		return err
	}
	return w.Member(rig.One).SetFaults()
}

// loseLeaf deletes the leaf claim and the leaf PV, and removes their finalizers.
func (w *World) loseLeaf(ctx context.Context) error {
	one := w.Member(rig.One)
	leaf, err := get[corev1.PersistentVolume](ctx, w, one, w.Noted("volume"))
	if err != nil {
		return err
	}
	w.Note("handle", leaf.Spec.CSI.VolumeHandle)
	for _, obj := range []client.Object{leaf, w.claim()} { // the leaf PV first, because Xylem would re-create a leaf claim whose volume exists
		if err := w.delete(ctx, one, obj); err != nil {
			return err
		}
		if err := patch(ctx, one, obj, `{"metadata":{"finalizers":null}}`); client.IgnoreNotFound(errors.Unwrap(err)) != nil {
			return err
		}
	}
	return nil
}

// destroyLost creates a Released PV for the disk that no longer has one, so that the member's
// provisioner destroys the disk.
func (w *World) destroyLost(ctx context.Context) error {
	pv := volume("lost-" + w.Namespace)
	pv.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": controlplane.DefaultDriverName}
	pv.Spec = corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, StorageClassName: rig.ClassDelete,
		ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: w.Namespace, Name: "gone", UID: "gone"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: controlplane.DefaultDriverName, VolumeHandle: w.Noted("handle")}},
	}
	if err := w.Member(rig.One).API.Create(ctx, pv); err != nil {
		return fmt.Errorf("create a volume for the lost disk: %w", err)
	}
	return nil
}

// refusedFor returns nil once the claim's condition reports why the claim cannot be placed.
func (w *World) refusedFor(ctx context.Context, name, reason string) error {
	claim, err := get[corev1.PersistentVolumeClaim](ctx, w, w.Host, name)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == v1alpha1.ClaimPlaced && c.Status == corev1.ConditionFalse && c.Reason == reason
	}) {
		return fmt.Errorf("claim %s reports %v, want %s", name, claim.Status.Conditions, reason)
	}
	return nil
}
