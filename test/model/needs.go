package model

import (
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// snapshot is the state of the VolumeSnapshot of the first claim.
type snapshot uint8

const (
	noSnapshot snapshot = iota
	untaken             // a user created it, and the member has not taken it
	taken
)

// volumeSnapshot returns the VolumeSnapshot in a state, or nil.
func (s hostState) volumeSnapshot() *snapshotv1.VolumeSnapshot {
	if s.snapshot == noSnapshot {
		return nil
	}
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "snap", UID: "snap"},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(claimNames[0])}},
		Status:     &snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(s.snapshot == taken)},
	}
}

// snapshots makes the moves of a user who creates and deletes a VolumeSnapshot of the first claim.
func (ms *moves) snapshots() {
	root := ms.model.objects.claim(ms.from.roots[0])
	switch {
	case !ms.model.bounds.Needs:
	case ms.from.snapshot != noSnapshot:
		ms.add("a user deletes the VolumeSnapshot", func(to *world) { to.snapshot = noSnapshot })
	case root != nil && root.DeletionTimestamp == nil && root.Status.Phase == corev1.ClaimBound:
		ms.add("a user creates a VolumeSnapshot", func(to *world) { to.snapshot = untaken })
	}
}

// snapshot makes the moves of the host's snapshot-controller, which keeps the claim while its
// VolumeSnapshot is untaken, and of the member, which takes the snapshot. The member's snapshot-controller
// may be stopped until any other move was made.
func (ms *moves) snapshot() {
	m := ms.model
	root := m.objects.claim(ms.from.roots[0])
	if !m.bounds.Needs || root == nil {
		return
	}
	kept := mirrorsnapshot.HasPendingSnapshot(root)
	change := func(what string, change func(*corev1.PersistentVolumeClaim)) {
		ms.add("host: the snapshot-controller "+what, func(to *world) { to.roots[0] = m.objects.changeClaim(to.roots[0], change) })
	}
	switch awaited := ms.from.snapshot == untaken; {
	case awaited && !kept && root.DeletionTimestamp == nil:
		change("keeps the claim", func(root *corev1.PersistentVolumeClaim) {
			controllerutil.AddFinalizer(root, mirrorsnapshot.FinalizerSource)
		})
	case awaited && kept && m.diskOf(ms.from, root) >= 0:
		ms.add("member: the snapshot is taken", func(to *world) { to.snapshot = taken })
	case !awaited && kept:
		change("no longer keeps the claim", func(root *corev1.PersistentVolumeClaim) {
			controllerutil.RemoveFinalizer(root, mirrorsnapshot.FinalizerSource)
		})
	}
}

// diskOf returns the index of the leaf PV of a claim's volume, or -1.
func (m *Model) diskOf(w world, root *corev1.PersistentVolumeClaim) int {
	n := slices.Index(hostNames[:], root.Spec.VolumeName)
	if n < 0 {
		return -1
	}
	host := m.objects.pv(w.hostState.pvs[n])
	if host == nil || !hostpv.ClaimRefHasUIDOf(host, root) {
		return -1
	}
	_, name, uid, _ := hostpv.LeafOfHostVolume(host)
	if leaf := m.leafNamed(w, name); leaf == nil || leaf.UID != uid {
		return -1
	}
	return slices.Index(leafNames[:], name)
}

// needed returns why others need the data of a volume, whichever feature they use. It does not ask the
// package proof, which it checks.
func (m *Model) needed(w world, n int) []string {
	if !m.bounds.Needs {
		return nil
	}
	of := m.usersOf(w, n)
	found := m.movesOf(w, n)
	root := m.objects.claim(w.roots[0])
	if w.snapshot == untaken && root != nil && slices.Contains(of, string(root.UID)) {
		found = append(found, "I2: destroyed although a VolumeSnapshot of it is still to be taken")
	}
	for c, i := range w.roots {
		clone := m.objects.claim(i)
		if clone == nil || !m.clones(c) || clone.DeletionTimestamp != nil || clone.Spec.VolumeName == "" {
			continue
		}
		record, recorded := mirror.DataSourceRecordOf(clone)
		host := slices.Index(hostNames[:], clone.Spec.VolumeName)
		if host < 0 || !recorded || !slices.Contains(of, string(record.UID)) {
			continue
		}
		if promise := m.objects.pv(w.hostState.pvs[host]); promise == nil || hostpv.IsUnfulfilledPromise(promise) {
			found = append(found, "I2: destroyed although a Bound claim is still to be cloned from it")
		}
	}
	return found
}

// usersOf returns the UIDs of the claims that have used a leaf PV, by its host PVs and its stamp.
func (m *Model) usersOf(w world, n int) []string {
	var uids []string
	for _, host := range m.mirrorsOf(w.hostState, leafNames[n]) {
		if host.Spec.ClaimRef != nil {
			uids = append(uids, string(host.Spec.ClaimRef.UID))
		}
	}
	if leaf := m.objects.pv(w.memberState.pvs[n]); leaf != nil {
		if origin, stamped := mirror.LeafOriginFromHost(here.HostID, leaf); stamped {
			uids = append(uids, string(origin.UID))
		}
	}
	return uids
}
