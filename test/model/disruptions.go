package model

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
)

// disruptions returns the actions of users and admins, and the failures that are possible in a
// world. Each counts against the world's budget.
func (m *Model) disruptions(w world) []move {
	if w.budget == 0 {
		return nil
	}
	w.budget--
	ms := &moves{model: m, from: w}
	for c := range m.bounds.Names {
		ms.users(c)
	}
	if w.mode != mirrors {
		ms.pods()
	}
	ms.backupTool()
	if m.bounds.Backups {
		return ms.made
	}
	ms.snapshots()
	for n := range w.hostState.pvs {
		ms.hostAdmin(n)
	}
	if m.bounds.Edits {
		ms.edits()
	}
	if m.bounds.Restores {
		ms.restores()
		return ms.made
	}
	ms.memberAdmin()
	ms.adopts()
	if m.bounds.Imports {
		ms.imports()
	}
	ms.restores()
	if w.lagging == none {
		for k := rootClaims; k <= leafVolumes; k++ {
			if k == hostPods && w.mode == mirrors {
				continue
			}
			ms.add("a cache becomes stale"+k.String(), func(to *world) { to.lag(k) })
		}
	}
	return ms.made
}

func (ms *moves) users(c int) {
	m := ms.model
	root := m.objects.claim(ms.from.roots[c])
	if root == nil && c == copyOfMove {
		return
	}
	if root == nil {
		ms.add("a user creates the claim", func(to *world) {
			if uid := m.unused(*to, rootUIDs...); uid != "" {
				to.roots[c] = m.objects.keep(m.newRoot(c, uid))
			}
		})
		if m.bounds.Asks {
			ms.askFor(c)
		}
		return
	}
	if size := root.Spec.Resources.Requests[corev1.ResourceStorage]; m.bounds.Asks && size.Cmp(larger) < 0 && root.Status.Phase == corev1.ClaimBound {
		ms.add("a user expands the claim", func(to *world) {
			to.roots[c] = m.objects.changeClaim(to.roots[c], func(root *corev1.PersistentVolumeClaim) { root.Spec.Resources.Requests = sized(larger) })
		})
	}
	if root.DeletionTimestamp == nil {
		ms.add("a user deletes the claim", func(to *world) {
			to.roots[c] = m.objects.changeClaim(to.roots[c], func(root *corev1.PersistentVolumeClaim) { root.DeletionTimestamp = &deleted })
			to.stopMove(root.Name)
		})
	}
	selected := root.Annotations[volumehelpers.AnnSelectedNode]
	if root.Spec.VolumeName == "" && selected == here.NodeName && !m.clones(c) && c != copyOfMove && !m.bounds.Restores {
		ms.add("the scheduler selects a node of the other member", func(to *world) { m.selectNode(to, c, there.NodeName) })
	}
	if root.Spec.VolumeName == "" && selected == there.NodeName && m.second != nil {
		ms.add("the scheduler selects a node of the first member", func(to *world) { m.selectNode(to, c, here.NodeName) })
	}
}

// askFor makes the moves of a user who requests an earlier claim's volume by name.
func (ms *moves) askFor(c int) {
	m := ms.model
	for _, i := range ms.from.memberState.pvs {
		pv := m.objects.pv(i)
		if pv == nil {
			continue
		}
		ms.add("a user creates the claim, and requests a volume by name", func(to *world) {
			if uid := m.unused(*to, rootUIDs...); uid != "" {
				root := newRoot(claimNames[c], uid)
				root.Spec.VolumeName = pv.Name
				to.roots[c] = m.objects.keep(root)
			}
		})
	}
}

// pods makes the moves of a user who creates and deletes Pods.
func (ms *moves) pods() {
	m := ms.model
	switch pod := m.objects.pod(ms.from.pod); {
	case pod == nil:
		ms.add("a user creates a Pod", func(to *world) {
			if uid := m.unused(*to, podUIDs...); uid != "" {
				to.pod = m.objects.keep(newPod(uid))
			}
		})
	case pod.DeletionTimestamp == nil:
		ms.add("a user deletes the Pod", func(to *world) {
			to.pod = m.objects.changePod(to.pod, func(pod *corev1.Pod) { pod.DeletionTimestamp = &deleted })
		})
		if pod.Spec.NodeName != "" && !podstatus.IsPodFinished(pod) {
			ms.add("the Pod completes", func(to *world) {
				to.pod = m.objects.changePod(to.pod, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
			})
		}
	}
}

func (ms *moves) hostAdmin(n int) {
	m := ms.model
	pv := m.objects.pv(ms.from.hostState.pvs[n])
	if pv == nil {
		return
	}
	edit := func(what string, change func(*corev1.PersistentVolume)) {
		ms.add("an admin "+what, func(to *world) {
			to.hostState.pvs[n] = m.objects.changePV(to.hostState.pvs[n], change)
			if pv.Spec.ClaimRef != nil {
				to.stopMove(pv.Spec.ClaimRef.Name)
			}
		})
	}
	if pv.DeletionTimestamp == nil {
		edit("deletes the host PV", func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &deleted })
	}
	edit("abandons the host PV", func(pv *corev1.PersistentVolume) {
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, v1alpha1.AnnotationAbandon, "true")
	})
	if m.bounds.Restores {
		return
	}
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimRecycle} {
		edit(fmt.Sprintf("sets the host PV to %s", policy), func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = policy })
	}
	if pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed {
		edit("frees the host PV", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
	}
	if root := m.rootReferredBy(ms.from, pv); hostpv.IsUnassignedPromise(pv) && pv.Status.Phase == corev1.VolumeBound && pv.DeletionTimestamp == nil && !hostpv.IsAbandonedVolume(pv) &&
		root != nil && root.Spec.VolumeName == pv.Name && root.Annotations[v1alpha1.AnnotationPlacedIn] == "" {
		ms.add("the other member fulfills the promise", func(to *world) { m.fulfillThere(to, n) })
	}
}

func (ms *moves) memberAdmin() {
	m := ms.model
	for n, i := range ms.from.memberState.pvs {
		pv := m.objects.pv(i)
		if pv == nil || pv.DeletionTimestamp != nil {
			continue
		}
		ms.add("the member's admin deletes the leaf PV", func(to *world) {
			gone := pv.DeepCopy()
			gone.DeletionTimestamp = &deleted
			to.memberState.pvs[n] = m.left(gone)
			to.theirs = to.theirs || to.memberState.pvs[n] == 0
		})
		ms.add("the leaf PV is re-created with the same name", func(to *world) {
			if uid := m.unused(*to, volumeUIDs("l", leafNames[n])...); uid != "" {
				to.memberState.pvs[n] = m.objects.changePV(i, func(pv *corev1.PersistentVolume) { pv.UID = uid })
			}
		})
	}
	for c, i := range ms.from.claims {
		claim := m.objects.claim(i)
		if claim == nil || claim.DeletionTimestamp != nil {
			continue
		}
		ms.add("the member's admin deletes the leaf claim", func(to *world) {
			to.claims[c] = m.objects.changeClaim(i, func(claim *corev1.PersistentVolumeClaim) { claim.DeletionTimestamp = &deleted })
		})
	}
}

func (ms *moves) restores() {
	w := ms.from
	if !w.backedUp[memberSide] && w.claims != [names]id{} {
		ms.add("a backup of the member", func(to *world) { to.memberBackup, to.backedUp[memberSide] = to.memberState, true })
	}
	if !w.backedUp[hostSide] && w.roots != [names]id{} && !ms.model.bounds.Restores {
		ms.add("a backup of the host", func(to *world) { to.hostBackup, to.backedUp[hostSide] = to.hostState, true })
	}
	if w.suspended != neither {
		return
	}
	if w.backedUp[memberSide] {
		ms.add("the member is restored", func(to *world) {
			to.memberState, to.memberBackup, to.backedUp[memberSide] = to.memberBackup, memberState{}, false
			to.suspended, to.memberRestored, to.theirs = theMember, true, true
			ms.restored(to)
		})
	}
	if w.backedUp[hostSide] {
		ms.add("the host is restored", func(to *world) {
			to.hostState, to.hostBackup, to.backedUp[hostSide] = to.hostBackup, hostState{}, false
			to.suspended, to.hostRestored = theHost, true
			ms.restored(to)
		})
	}
}

// restored makes the member's objects older than the restore, and makes all caches current.
func (ms *moves) restored(to *world) {
	m := ms.model
	for c, i := range to.claims {
		if i == 0 {
			continue
		}
		to.claims[c] = m.objects.changeClaim(i, func(claim *corev1.PersistentVolumeClaim) { claim.CreationTimestamp = before })
	}
	for n, i := range to.memberState.pvs {
		if i != 0 {
			to.memberState.pvs[n] = m.objects.changePV(i, func(pv *corev1.PersistentVolume) { pv.CreationTimestamp = before })
		}
	}
	to.follow()
}
