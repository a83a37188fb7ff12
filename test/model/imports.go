package model

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

const (
	// handMade is the name of a leaf PV that already existed in the member.
	handMade = "disk"
	// theirs is the UID of the member's own claim, which Xylem did not create.
	theirs = types.UID("theirs")
)

// The indexes of the objects for imports: the leaf PV, the host PV with the same name, and a second
// host PV for the same leaf PV.
const (
	handMadeLeaf = leaves - 1
	firstImport  = leaves - 1
	secondImport = 2*leaves - 1
)

// beginImports adds the initial worlds of the search. In each of them, a member has an existing
// volume, and a claim requests the volume in one of the possible ways.
func (s *search) beginImports(w world) {
	m := s.model
	w.before, w.disks[handMadeLeaf] = true, true
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain} {
		for _, consent := range []bool{false, true} {
			for _, asks := range []string{"by its class", "by volumeName", "by the PV's claimRef"} {
				to := w
				to.memberState.pvs[handMadeLeaf] = m.objects.keep(newHandMade(w.leafPolicy.reclaim(), consent))
				host := newImport(hostNames[firstImport], policy)
				root := newRoot(claimNames[0], rootUIDs[0])
				switch asks {
				case "by volumeName":
					root.Spec.VolumeName = host.Name
				case "by the PV's claimRef":
					host.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: root.Name}
				}
				host.UID = hostUIDs[firstImport][0]
				to.hostState.pvs[firstImport], to.roots[0] = m.objects.keep(host), m.objects.keep(root)
				s.visit(to, -1, fmt.Sprintf("a member's existing volume with policy %s (consent: %v), a host PV for it with policy %s, and a claim that requests it %s",
					w.leafPolicy.reclaim(), consent, policy, asks))
			}
		}
	}
}

// newHandMade returns a leaf PV that already existed in the member. If the PV is released with
// policy Delete, the provisioner destroys the disk.
func newHandMade(policy corev1.PersistentVolumeReclaimPolicy, consent bool) *corev1.PersistentVolume {
	pv := newLeafVolume(newRoot("before", "before"), volumeUIDs("l", handMade)[0], policy)
	pv.Name, pv.Spec.ClaimRef, pv.Status.Phase = handMade, nil, corev1.VolumeAvailable
	pv.Spec.CSI.VolumeHandle = "disk-" + handMade
	if consent {
		metav1.SetMetaDataLabel(&pv.ObjectMeta, v1alpha1.LabelHost, here.HostID)
	}
	return pv
}

// newImport returns the host PV that an admin creates for the existing leaf PV.
func newImport(name string, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	leaf := newHandMade(policy, false)
	mirrored := hostpv.TranslateVolume(leaf, newRoot(claimNames[0], ""), policy, here)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{pvProtection}, CreationTimestamp: before},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: leaf.Spec.AccessModes, VolumeMode: leaf.Spec.VolumeMode, Capacity: leaf.Spec.Capacity, StorageClassName: className,
			PersistentVolumeReclaimPolicy: policy, NodeAffinity: mirrored.Spec.NodeAffinity,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: v1alpha1.ProvisionerName, VolumeHandle: mirrored.Spec.CSI.VolumeHandle}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumePending},
	}
}

// ownClaim returns the member's own claim, bound to the existing leaf PV.
func ownClaim() *corev1.PersistentVolumeClaim {
	claim := newRoot("theirs", theirs)
	claim.Namespace, claim.Spec.VolumeName, claim.Status.Phase = "theirs", handMade, corev1.ClaimBound
	return claim
}

// takenInMember reports whether a leaf PV is bound to the member's own claim.
func takenInMember(leaf *corev1.PersistentVolume) bool {
	return leaf != nil && leaf.Spec.ClaimRef != nil && leaf.Spec.ClaimRef.UID == theirs && leaf.Status.Phase == corev1.VolumeBound
}

// imports makes the moves of admins and users that involve the existing volume.
func (ms *moves) imports() {
	m := ms.model
	for _, n := range []int{firstImport, secondImport} {
		if ms.from.hostState.pvs[n] != 0 {
			continue
		}
		ms.add("an admin creates "+hostNames[n]+" for the volume", func(to *world) {
			if uid := m.unused(*to, hostUIDs[n]...); uid != "" {
				pv := newImport(hostNames[n], corev1.PersistentVolumeReclaimDelete)
				pv.UID = uid
				to.hostState.pvs[n] = m.objects.keep(pv)
			}
		})
	}
	leaf := m.objects.pv(ms.from.memberState.pvs[handMadeLeaf])
	if leaf == nil {
		return
	}
	edit := func(what string, change func(*corev1.PersistentVolume)) {
		ms.add(what, func(to *world) {
			to.memberState.pvs[handMadeLeaf] = m.objects.changePV(to.memberState.pvs[handMadeLeaf], change)
		})
	}
	if _, consents := leaf.Labels[v1alpha1.LabelHost]; consents {
		edit("the member's admin withdraws the consent", func(pv *corev1.PersistentVolume) { delete(pv.Labels, v1alpha1.LabelHost) })
	} else {
		edit("the member's admin consents", func(pv *corev1.PersistentVolume) {
			metav1.SetMetaDataLabel(&pv.ObjectMeta, v1alpha1.LabelHost, here.HostID)
		})
	}
	switch ref := leaf.Spec.ClaimRef; {
	case ref == nil && leaf.Status.Phase == corev1.VolumeAvailable && leaf.DeletionTimestamp == nil:
		edit("the member's own claim takes the volume", func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef, pv.Status.Phase = reference(ownClaim()), corev1.VolumeBound
		})
	case takenInMember(leaf):
		edit("the member's own claim is deleted", func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased })
	}
}

// handMadeWritten returns why a write to the member's existing leaf PV is wrong. The member's admin
// must consent now or, if a leaf claim already has the volume, must have consented before, and the
// member's own claim must not use the volume (I4, I8).
func (m *Model) handMadeWritten(w world, was, is *corev1.PersistentVolume) []string {
	if !w.before || was.Name != handMade {
		return nil
	}
	_, stamped := mirror.LeafOriginFromHost(here.HostID, was)
	switch {
	case was.Labels[v1alpha1.LabelHost] != here.HostID && !hostpv.ClaimRefHasUIDOf(was, m.objects.claim(w.claims[0])):
		return []string{"I8: Xylem writes to a volume without the consent of the member's admin"}
	case takenInMember(was):
		return []string{"I4: Xylem writes to a volume that the member's own claim uses"}
	case !stamped && is.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return []string{"I2: Xylem adopts a member's existing volume without setting it to Retain"}
	}
	return nil
}

// importWritten returns why a write to a host PV that an admin created is wrong.
func (m *Model) importWritten(w world, was, is *corev1.PersistentVolume) []string {
	if _, asks := hostpv.RequestedImportIn(was, here.ClusterID); !asks || !hostpv.IsImportedVolume(is) {
		return nil
	}
	_, name, uid, ours := hostpv.LeafOfHostVolume(is)
	leaf := m.leafNamed(w, name)
	switch {
	case !ours || leaf == nil || leaf.UID != uid:
		return []string{"I8: a host PV adopts a volume that does not exist"}
	case leaf.Labels[v1alpha1.LabelHost] != here.HostID:
		return []string{"I8: a host PV adopts a volume without the consent of the member's admin"}
	case takenInMember(leaf):
		return []string{"I4: a host PV adopts a volume that the member's own claim uses"}
	case len(m.mirrorsOf(w.hostState, name)) > 1:
		return []string{"I3: a second host PV adopts a volume"}
	case hostpv.MemberReclaimPolicy(leaf) == corev1.PersistentVolumeReclaimRetain && is.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return []string{"I2: a host PV with policy Delete adopts a volume that its member retains"}
	}
	return nil
}

// unsettledImport returns what is wrong with a host PV that an admin created, in a world without
// moves.
func (m *Model) unsettledImport(w world, pv *corev1.PersistentVolume) []string {
	if name, asks := hostpv.RequestedImportIn(pv, here.ClusterID); asks && pv.DeletionTimestamp == nil && m.leafNamed(w, name) != nil { // leaf_pv reports a missing leaf PV
		return []string{"a host PV waits for volume " + name}
	}
	if _, name, uid, ours := hostpv.LeafOfHostVolume(pv); ours && hostpv.IsImportedVolume(pv) && pv.DeletionTimestamp == nil && controllerutil.ContainsFinalizer(pv, v1alpha1.FinalizerLeafVolume) {
		leaf := m.leafNamed(w, name)
		if leaf != nil && leaf.UID == uid && stampOf(leaf) == "" { // the bound claim reports a missing leaf PV
			return []string{"a host PV has adopted a volume that has no stamp"}
		}
	}
	return nil
}

// stampedForClaim reports whether a leaf PV is stamped for a claim, rather than for a host PV.
func stampedForClaim(leaf client.Object) bool {
	origin, stamped := mirror.LeafOriginFromHost(here.HostID, leaf)
	return stamped && origin.Root.Namespace != ""
}

func stampOf(leaf client.Object) types.UID {
	origin, _ := mirror.LeafOriginFromHost(here.HostID, leaf)
	return origin.UID
}
