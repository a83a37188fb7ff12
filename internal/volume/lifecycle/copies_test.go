package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/volume"
)

// As long as other members may have copies of a volume, root_pv waits and reports them. Without
// copies, it takes a step in each of these states.
func TestCopiedVolumeIsKept(t *testing.T) {
	leaf := func(policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
		pv := leafPV()
		pv.Spec.PersistentVolumeReclaimPolicy, pv.Spec.ClaimRef, pv.Status.Phase = policy, refOf("leaf-claim"), corev1.VolumeBound
		originOf("root").StampLeaf(pv)
		pv.Annotations[v1alpha1.AnnotationReclaimPolicy] = string(deletes)
		return pv
	}
	claim := func() *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{}
		c.Namespace, c.Name, c.UID = key.Namespace, key.Name, "leaf-claim"
		c.Spec.VolumeName, c.Status.Phase = "pv-1", corev1.ClaimBound
		originOf("root").StampLeaf(c)
		return c
	}
	another := func() *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{}
		c.Namespace, c.Name, c.UID, c.Spec.VolumeName = key.Namespace, key.Name, "root", "another"
		return c
	}
	for name, tc := range map[string]struct {
		root   *corev1.PersistentVolumeClaim
		claim  *corev1.PersistentVolumeClaim
		leaf   *corev1.PersistentVolume
		change func(*corev1.PersistentVolume)
		step   Step
	}{
		"the volume must be destroyed":    {leaf: leaf(retains), claim: claim(), step: SetDelete},
		"its policy is already Delete":    {leaf: leaf(deletes), claim: claim(), step: DeleteClaim},
		"the disk is gone":                {step: DropHost},
		"the disk is gone, not the claim": {claim: claim(), step: DeleteClaim},
		"the host retains it":             {leaf: leaf(retains), claim: claim(), change: func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = retains }, step: DeleteClaim},
		"the host retains it, and is deleting": {change: func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy, pv.DeletionTimestamp = retains, &deleted
		}, step: DropKept},
		"reclaiming it has failed":     {leaf: leaf(retains), claim: claim(), change: func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeFailed }, step: SetDelete},
		"its claim has another volume": {root: another(), step: DropHost},
	} {
		t.Run(name, func(t *testing.T) {
			observe := func(copied bool) *volume.Observed {
				host := hostPV.DeepCopy()
				host.Status.Phase, host.Spec.ClaimRef = corev1.VolumeReleased, refOf("root")
				if tc.change != nil {
					tc.change(host)
				}
				if copied {
					host = hostpv.VolumeWithCopyIn(host, "id39")
				}
				s := combination(tc.root, host, false, tc.claim, tc.leaf, noRestore)
				s.Copies = []string{`member "cluster39"`}
				return s
			}
			if p := NextPlan(observe(false)); p.StepOwnedBy(RootPV) != tc.step {
				t.Errorf("without copies: %s, step %q by %s; want %q", p.Phase, p.Step, p.Owner, tc.step)
			}
			p := NextPlan(observe(true))
			if p.Step != None || p.Owner != RootPV || p.Report == nil || p.Report.Reason != v1alpha1.ReasonStillNeeded {
				t.Errorf("with a copy: %s, step %q by %s, report %v", p.Phase, p.Step, p.Owner, p.Report)
			}
		})
	}
}
