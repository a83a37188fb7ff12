package model

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// edits makes the moves of users and admins who edit what Xylem and Kubernetes maintain, or remove
// finalizers.
func (ms *moves) edits() {
	m := ms.model
	for c, i := range ms.from.roots {
		if m.objects.claim(i) == nil {
			continue
		}
		ms.editClaim("a user", hostSide, c, v1alpha1.AnnotationPlacedIn, volumehelpers.AnnSelectedNode)
	}
	for c, i := range ms.from.claims {
		if m.objects.claim(i) != nil {
			ms.editClaim("the member's admin", memberSide, c, v1alpha1.AnnotationRoot)
			ms.add("the member's admin removes the leaf claim's labels", func(to *world) {
				to.claims[c] = m.objects.changeClaim(i, func(claim *corev1.PersistentVolumeClaim) { claim.Labels = nil })
			})
		}
	}
	for n, i := range ms.from.hostState.pvs {
		if m.objects.pv(i) != nil {
			ms.editVolume("an admin", hostSide, n)
		}
	}
	for n, i := range ms.from.memberState.pvs {
		pv := m.objects.pv(i)
		if pv == nil {
			continue
		}
		ms.editVolume("the member's admin", memberSide, n)
		for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain} {
			ms.add("the member's admin sets the leaf PV to "+string(policy), func(to *world) {
				to.memberState.pvs[n] = m.objects.changePV(i, func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = policy })
			})
		}
		ms.add("the member's admin removes the leaf PV's stamp", func(to *world) {
			to.memberState.pvs[n] = m.objects.changePV(i, func(pv *corev1.PersistentVolume) {
				delete(pv.Labels, v1alpha1.LabelHost)
				delete(pv.Labels, v1alpha1.LabelManagedBy)
			})
		})
	}
	ms.add("an admin deletes the host's class", func(to *world) { to.lacksHostClass = true })
	ms.add("the member's admin deletes the class", func(to *world) { to.lacksLeafClass = true })
}

func (ms *moves) editClaim(who string, s side, c int, annotations ...string) {
	m := ms.model
	i := claimsAt(&ms.from, s)[c]
	for _, key := range annotations {
		ms.add(who+" removes the "+s.String()+"'s annotation "+key, func(to *world) {
			claimsAt(to, s)[c] = m.objects.changeClaim(i, func(claim *corev1.PersistentVolumeClaim) { delete(claim.Annotations, key) })
		})
	}
	ms.add(who+" deletes the "+s.String()+"'s claim and its finalizers", func(to *world) { claimsAt(to, s)[c] = 0 })
}

func (ms *moves) editVolume(who string, s side, n int) {
	m := ms.model
	i := pvsAt(&ms.from, s)[n]
	edit := func(what string, change func(*corev1.PersistentVolume)) {
		ms.add(who+" "+what+" the "+s.String()+"'s PV", func(to *world) { pvsAt(to, s)[n] = m.objects.changePV(i, change) })
	}
	if ref := m.objects.pv(i).Spec.ClaimRef; ref != nil {
		edit("removes the claimRef of", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
		edit("removes the claimRef's uid of", func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef = pv.Spec.ClaimRef.DeepCopy()
			pv.Spec.ClaimRef.UID = ""
		})
	}
	edit("changes the claimRef of", func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: "none", UID: "none"}
	})
	ms.add(who+" removes the finalizers of the "+s.String()+"'s PV", func(to *world) {
		without := m.objects.pv(i).DeepCopy()
		without.Finalizers = nil
		pvsAt(to, s)[n] = m.left(without)
		to.theirs = to.theirs || s == memberSide && pvsAt(to, s)[n] == 0
	})
	ms.add(who+" deletes the "+s.String()+"'s PV and its finalizers", func(to *world) {
		pvsAt(to, s)[n] = 0
		to.theirs = to.theirs || s == memberSide
	})
}

// provisionedInVain reports whether an admin removed or changed the claimRef of the volume that was
// provisioned for a leaf claim. The provisioner does not provision another volume with that name. Once the
// member's scheduler has selected a node, which is not part of the model, root_pvc reports that the
// provisioner is silent.
func (m *Model) provisionedInVain(s memberState, c int) bool {
	claim := m.objects.claim(s.claims[c])
	if claim == nil || claim.Spec.VolumeName != "" {
		return false
	}
	pv := m.objects.pv(s.pvs[slices.Index(leafNames[:], leafName(claim.UID))])
	return pv != nil && (pv.Spec.ClaimRef == nil || !volumehelpers.IsVolumeBoundToClaim(pv, claim))
}

// holder returns the leaf claim to which a leaf PV is bound, or nil, and its origin if it is stamped.
func (m *Model) holder(w world, leaf *corev1.PersistentVolume) (claim *corev1.PersistentVolumeClaim, origin mirror.Origin, stamped bool) {
	for _, i := range w.claims {
		if claim = m.objects.claim(i); hostpv.ClaimRefHasUIDOf(leaf, claim) {
			origin, stamped = mirror.LeafOriginFromHost(here.HostID, claim)
			return claim, origin, stamped
		}
	}
	return nil, mirror.Origin{}, false
}

// estranged reports whether a leaf PV is bound to a claim that has lost its stamp.
func (m *Model) estranged(w world, leaf *corev1.PersistentVolume) bool {
	claim, _, stamped := m.holder(w, leaf)
	return claim != nil && !stamped
}

// lives reports whether the root of a leaf PV's stamp exists, or the root of the leaf claim to which it is
// bound.
func (m *Model) lives(w world, leaf *corev1.PersistentVolume) bool {
	stamp, stamped := mirror.LeafOriginFromHost(here.HostID, leaf)
	_, origin, held := m.holder(w, leaf)
	return stamped && m.rootOf(w, stamp.UID) != nil || held && m.rootOf(w, origin.UID) != nil
}

// misbound reports whether an admin changed the claimRef of the leaf PV that a leaf claim names.
func (m *Model) misbound(w world, claim *corev1.PersistentVolumeClaim) bool {
	leaf := m.leafNamed(w, claim.Spec.VolumeName)
	return leaf != nil && !hostpv.ClaimRefHasUIDOf(leaf, claim)
}

// promiseIsFree reports whether an admin removed the claimRef of a claim's promise, so that the scheduler
// may select the promise for any claim.
func (m *Model) promiseIsFree(w world, root *corev1.PersistentVolumeClaim) bool {
	promise := m.promiseOf(w, root)
	return promise != nil && promise.Spec.ClaimRef == nil
}
