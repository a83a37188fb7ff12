package model

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// own returns the index in leafNames of a leaf PV that already existed in the member, without a claim. It
// has the name of the second leaf claim's volume, so the provisioner finds its disk. With Needs, more
// than one claim gets a disk, so it has another name.
func (m *Model) own() int {
	if m.bounds.Needs {
		return handMadeLeaf
	}
	return 1
}

// hadBefore returns the member's existing volume, with the consent of the member's admin.
func hadBefore(own int, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	if own == handMadeLeaf {
		return newHandMade(policy, true)
	}
	pv := newLeafVolume(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: claimUIDs[own]}, Spec: newRoot(claimNames[0], rootUIDs[0]).Spec},
		volumeUIDs("l", leafNames[own])[0], policy)
	pv.Spec.ClaimRef, pv.Status.Phase = nil, corev1.VolumeAvailable
	pv.Labels = map[string]string{v1alpha1.LabelHost: here.HostID}
	return pv
}

// asking returns the host PV with which an admin requests the existing volume.
func asking(name string, policy corev1.PersistentVolumeReclaimPolicy, leaf *corev1.PersistentVolume) *corev1.PersistentVolume {
	pv := hostpv.TranslateVolume(leaf, newRoot(claimNames[0], rootUIDs[0]), policy, here)
	pv.ObjectMeta = metav1.ObjectMeta{Name: name, Finalizers: []string{pvProtection}}
	pv.Spec.ClaimRef, pv.Spec.StorageClassName, pv.Spec.CSI.VolumeAttributes, pv.Status.Phase = nil, className, nil, corev1.VolumePending
	return pv
}

// adopts makes the moves of admins who adopt a volume.
func (ms *moves) adopts() {
	m := ms.model
	own := m.own()
	leaf := m.objects.pv(ms.from.memberState.pvs[own])
	if !m.bounds.Adopts || leaf == nil {
		return
	}
	for _, name := range []string{leafNames[own], hostpv.HostVolumeName(leafNames[own], here.ClusterID, true)} {
		n := slices.Index(hostNames[:], name)
		if ms.from.hostState.pvs[n] != 0 {
			continue
		}
		ms.add("an admin creates host PV "+name, func(to *world) {
			pv := asking(name, to.hostPolicy.reclaim(), leaf)
			if pv.UID = m.unused(*to, hostUIDs[n]...); pv.UID != "" {
				pv.CreationTimestamp = to.now()
				to.hostState.pvs[n] = m.objects.keep(pv)
			}
		})
	}
	if _, stamped := leaf.Labels[v1alpha1.LabelManagedBy]; stamped {
		return
	}
	label, what := here.HostID, "consents"
	if leaf.Labels[v1alpha1.LabelHost] != "" {
		label, what = "", "withdraws the consent"
	}
	ms.add("the member's admin "+what, func(to *world) {
		to.memberState.pvs[own] = m.objects.changePV(to.memberState.pvs[own], func(pv *corev1.PersistentVolume) {
			if pv.Labels = nil; label != "" {
				pv.Labels = map[string]string{v1alpha1.LabelHost: label}
			}
		})
	})
}

// notTheirs returns why a write to the member's existing leaf PV is wrong.
func (m *Model) notTheirs(was, is *corev1.PersistentVolume) []string {
	var found []string
	if _, stamped := was.Labels[v1alpha1.LabelManagedBy]; m.bounds.Adopts && !stamped && was.Spec.ClaimRef == nil {
		if was.Labels[v1alpha1.LabelHost] != here.HostID {
			found = append(found, "I4: a volume is stamped without consent")
		}
		if is.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			found = append(found, "I2: a volume is stamped but not set to Retain")
		}
	}
	return found
}
