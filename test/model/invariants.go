package model

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// leafNamed returns the leaf PV with the given name, or nil.
func (m *Model) leafNamed(w world, name string) *corev1.PersistentVolume {
	n := slices.Index(leafNames[:], name)
	if n < 0 {
		return nil
	}
	return m.objects.pv(w.memberState.pvs[n])
}

// mirrorsOf returns the host PVs that represent a leaf PV of the given name, regardless of its UID.
func (m *Model) mirrorsOf(s hostState, leaf string) []*corev1.PersistentVolume {
	var found []*corev1.PersistentVolume
	for _, i := range s.pvs {
		if pv := m.objects.pv(i); pv != nil && hostpv.RecordsLeaf(pv, m.self.ClusterID, leaf) {
			found = append(found, pv)
		}
	}
	return found
}

// rootOf returns the root claim with the given UID, or nil.
func (m *Model) rootOf(w world, uid types.UID) *corev1.PersistentVolumeClaim {
	for _, i := range w.roots {
		if root := m.objects.claim(i); root != nil && root.UID == uid {
			return root
		}
	}
	return nil
}

// promiseOf returns the promise that was created for a claim, or nil.
func (m *Model) promiseOf(w world, root *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	n := slices.Index(hostNames[:], hostpv.PromiseName(root.UID))
	if n < 0 {
		return nil // the claim of a move's copy
	}
	return m.objects.pv(w.hostState.pvs[n])
}

// rootReferredBy returns the root claim to which a host PV refers, or nil if the claim was deleted.
func (m *Model) rootReferredBy(w world, pv *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	if pv.Spec.ClaimRef == nil {
		return nil
	}
	return m.rootOf(w, pv.Spec.ClaimRef.UID)
}

// violations returns the invariants that a write violates. w is the world before the write.
func (m *Model) violations(w world, s side, before, after encoded) []string {
	switch after := after.(type) {
	case *corev1.PersistentVolumeClaim:
		was, _ := before.(*corev1.PersistentVolumeClaim)
		if s == memberSide {
			return m.leafClaimWritten(w, was, after)
		}
		return m.rootWritten(w, was, after)
	case *corev1.PersistentVolume:
		was, _ := before.(*corev1.PersistentVolume)
		if s == memberSide {
			return m.leafVolumeWritten(w, was, after)
		}
		return m.hostVolumeWritten(w, was, after)
	}
	return nil
}

// rootWritten checks that a claim is not placed in one member while only the other has its leaf
// claim.
func (m *Model) rootWritten(w world, was, is *corev1.PersistentVolumeClaim) []string {
	if was == nil || was.Annotations[v1alpha1.AnnotationPlacedIn] != "" || is.Annotations[v1alpha1.AnnotationPlacedIn] != m.self.ClusterID {
		return nil
	}
	for c, i := range w.second.claims {
		if leaf := m.objects.claim(i); leaf != nil && w.claims[c] == 0 {
			if origin, _ := mirror.LeafOriginFromHost(here.HostID, leaf); origin.UID == is.UID {
				return []string{"I3: a claim is placed in a member while another member has its leaf claim"}
			}
		}
	}
	return nil
}

func (m *Model) leafClaimWritten(w world, was, is *corev1.PersistentVolumeClaim) []string {
	if was == nil {
		origin, _ := mirror.LeafOriginFromHost(here.HostID, is)
		root := m.rootOf(w, origin.UID)
		if root == nil || root.Annotations[v1alpha1.AnnotationPlacedIn] != m.self.ClusterID {
			return []string{"I3: a leaf claim is created for a claim that is not placed here"}
		}
		return nil
	}
	if was.DeletionTimestamp != nil || is.DeletionTimestamp == nil {
		return nil
	}
	var found []string
	for n, i := range w.memberState.pvs {
		if pv := m.objects.pv(i); pv != nil && hostpv.ClaimRefNamesClaim(pv, was) && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			found = append(found, m.destroyed(w, n, was)...)
		}
	}
	origin, _ := mirror.LeafOriginFromHost(here.HostID, was)
	if m.rootOf(w, origin.UID) != nil && !m.releasing(w) && was.Spec.VolumeName != "" {
		found = append(found, "I2: the leaf claim of an existing claim is deleted although it has a volume")
	}
	return found
}

func (m *Model) leafVolumeWritten(w world, was, is *corev1.PersistentVolume) []string {
	if found := m.handMadeWritten(w, was, is); found != nil {
		return found
	}
	toDelete := corev1.PersistentVolumeReclaimDelete
	if wrong := m.notTheirs(was, is); len(wrong) > 0 {
		return wrong
	}
	if was.Spec.PersistentVolumeReclaimPolicy == toDelete || is.Spec.PersistentVolumeReclaimPolicy != toDelete {
		return nil
	}
	return m.destroyed(w, slices.Index(leafNames[:], is.Name), nil)
}

// releasing reports whether a promise with release WhenUnused is marked as releasing.
func (m *Model) releasing(w world) bool {
	return slices.ContainsFunc(w.hostState.pvs[:], func(i id) bool { pv := m.objects.pv(i); return pv != nil && hostpv.IsReleasingDisk(pv) })
}

// releasedInUse returns why the disk of a promise with release WhenUnused must not be released (I2,
// case c). Pods count only until the leaf PV has policy Delete. After that, a new Pod waits for a
// new disk, and Xylem deletes the leaf claim.
func (m *Model) releasedInUse(w world, host *corev1.PersistentVolume, by *corev1.PersistentVolumeClaim) []string {
	switch {
	case host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		return []string{"I2: destroyed although the promise has policy Retain"}
	case host.Annotations[v1alpha1.AnnotationConsumer] == "":
		return []string{"I2: released although no consumer was recorded"}
	case by == nil && m.podUses(w):
		return []string{"I2: released while a Pod uses it"}
	}
	return nil
}

// podUses reports whether the Pod exists and has not ended.
func (m *Model) podUses(w world) bool {
	pod := m.objects.pod(w.pod)
	return pod != nil && !podstatus.IsPodFinished(pod)
}

// destroyed returns why the data of a volume must not be destroyed.
func (m *Model) destroyed(w world, n int, by *corev1.PersistentVolumeClaim) []string {
	if w.suspended != neither {
		return []string{"I2: destroyed while a restore is not confirmed"}
	}
	leaf := m.objects.pv(w.memberState.pvs[n])
	hosts := m.mirrorsOf(w.hostState, leafNames[n])
	found := m.needed(w, n)
	if len(hosts) == 0 {
		return append(found, m.destroyedUnmirrored(w, n, by)...)
	}
	for _, host := range hosts {
		if _, asks := hostpv.RequestedImportIn(host, here.ClusterID); asks && len(hosts) > 1 {
			continue // another host PV represents the volume, and Xylem rejected this one
		}
		_, _, uid, _ := hostpv.LeafOfHostVolume(host)
		switch ref := host.Spec.ClaimRef; {
		case hostpv.IsReleasingDisk(host) && !hostpv.IsReleasedOrFailed(host):
			found = append(found, m.releasedInUse(w, host, by)...)
		case hostpv.IsAbandonedVolume(host):
			found = append(found, "I2: destroyed although its host PV was abandoned")
		case host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
			found = append(found, "I2: destroyed although the host PV has policy Retain")
		case !hostpv.IsReleasedOrFailed(host):
			found = append(found, "I2: destroyed although the host PV is not Released")
		case m.rootOf(w, ref.UID) != nil:
			found = append(found, "I2: destroyed although the claim exists")
		case by == nil && leaf.Annotations[v1alpha1.AnnotationReclaimPolicy] != string(corev1.PersistentVolumeReclaimDelete):
			found = append(found, "I2: destroyed although the member had policy Retain")
		case uid != leaf.UID:
			found = append(found, "I2: destroyed although the leaf PV is not the mirrored one")
		}
	}
	return found
}

// destroyedUnmirrored returns why the data of a volume that no host PV represents must not be
// destroyed. While no claim is bound to the volume, no Pod can have written to it.
func (m *Model) destroyedUnmirrored(w world, n int, by *corev1.PersistentVolumeClaim) []string {
	_, stamped := mirror.LeafOriginFromHost(here.HostID, m.objects.pv(w.memberState.pvs[n]))
	switch {
	case by != nil && by.Annotations[fromBackup] != "":
		return m.destroyedBackup(w, by)
	case stamped || w.mirrored[n]:
		return []string{"I2: destroyed although it was mirrored and the host has no PV for it"}
	case by == nil:
		return []string{"I2: destroyed without a host PV as evidence"}
	case by.Spec.VolumeName != "" && restoresOf(w.state).MayLackRoot(by):
		return []string{"I2: destroyed although the host may have lost its claim in a restore"}
	}
	return nil
}

func (m *Model) hostVolumeWritten(w world, was, is *corev1.PersistentVolume) []string {
	if was == nil {
		return m.hostVolumeMade(w, is)
	}
	if found := m.importWritten(w, was, is); found != nil {
		return found
	}
	ours := func(pv *corev1.PersistentVolume) bool {
		return controllerutil.ContainsFinalizer(pv, v1alpha1.FinalizerLeafVolume)
	}
	goes := was.DeletionTimestamp == nil && is.DeletionTimestamp != nil
	if !goes && (!ours(was) || ours(is)) || hostpv.IsAbandonedVolume(was) {
		return nil
	}
	var found []string
	_, name, uid, _ := hostpv.LeafOfHostVolume(was)
	leaf := m.leafNamed(w, name)
	if goes && leaf != nil && leaf.UID == uid {
		found = append(found, "I1: a host PV is deleted before its leaf PV")
	}
	if root := m.rootReferredBy(w, was); root != nil && root.Spec.VolumeName == was.Name && was.Status.Phase == corev1.VolumeBound {
		found = append(found, "I2: the host PV of a bound claim is released")
	}
	return found
}

func (m *Model) hostVolumeMade(w world, made *corev1.PersistentVolume) []string {
	root, ref := m.rootReferredBy(w, made), made.Spec.ClaimRef
	if root == nil {
		return nil // the PV controller releases such a PV
	}
	if root.Annotations[v1alpha1.AnnotationPlacedIn] == m.other.ClusterID {
		return []string{"I3: a volume is mirrored although the claim is placed elsewhere"}
	}
	if found := m.otherData(w, root, made); found != nil {
		return found
	}
	for _, i := range w.hostState.pvs {
		if pv := m.objects.pv(i); pv != nil && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == ref.UID && !hostpv.IsReleasedOrFailed(pv) {
			return []string{"I3: a second host PV is created for a claim"}
		}
	}
	return nil
}

// misled returns why the report of a step is wrong: it must not report as surplus a volume that its
// claim may still get, because an admin would delete that volume (F5).
func (m *Model) misled(w world, s step) []string {
	if !slices.Contains(s.told, v1alpha1.ReasonSurplusVolume) || w.lagging != none {
		return nil
	}
	if s.second {
		w = w.exchanged()
	}
	leaf := m.leafNamed(w, s.name)
	if leaf == nil {
		return nil
	}
	root := m.rootOf(w, types.UID(leaf.Annotations[v1alpha1.AnnotationRootUID]))
	if root != nil && root.Spec.VolumeName == "" && root.Annotations[v1alpha1.AnnotationPlacedIn] == "" {
		return []string{"I6: a volume is reported as surplus although its claim may still get it"}
	}
	return nil
}

// shared reports whether several controllers may write to a target, so that the resourceVersion
// decides which write wins.
//
// This applies to a promise without a disk: root_pvc writes the member's labels, leaf_pv records
// the disk, and root_pv ends the promise. A disk that is provisioned when no Pod needs it any
// longer is recorded, or is kept as an orphan.
func (m *Model) shared(w world, t target) bool {
	return t.side == hostSide && slices.ContainsFunc(w.hostState.pvs[:], func(i id) bool {
		pv := m.objects.pv(i)
		return pv != nil && pv.Name == t.name && hostpv.IsUnfulfilledPromise(pv)
	})
}

// unsettled returns what is wrong in a world without moves.
func (m *Model) unsettled(w world) []string {
	var found []string
	for _, i := range w.hostState.pvs {
		if pv := m.objects.pv(i); pv != nil {
			found = append(found, m.unsettledHost(w, pv)...)
			found = append(found, m.unsettledImport(w, pv)...)
		}
	}
	for n, there := range w.disks {
		leaf := m.objects.pv(w.memberState.pvs[n])
		switch {
		case there && leaf == nil && w.second.pvs[n] == 0 && !w.theirs:
			found = append(found, "I1: a disk without a PV")
		case leaf != nil && leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && m.inUse(w, leaf):
			found = append(found, "the leaf PV of a host PV in use has policy Delete")
		}
	}
	for c := range claimNames {
		root, claim := m.objects.claim(w.roots[c]), m.objects.claim(w.claims[c])
		if claim != nil {
			if origin, stamped := mirror.LeafOriginFromHost(here.HostID, claim); stamped && (root == nil || origin.UID != root.UID) && !m.misbound(w, claim) {
				found = append(found, "a leaf claim is left although its root claim was deleted")
			}
		}
		if root != nil {
			found = append(found, m.unsettledRoot(w, c, root, claim)...)
		}
	}
	return found
}

// inUse reports whether a host PV represents a leaf PV, and has not been abandoned or released.
func (m *Model) inUse(w world, leaf *corev1.PersistentVolume) bool {
	return slices.ContainsFunc(m.mirrorsOf(w.hostState, leaf.Name), func(host *corev1.PersistentVolume) bool {
		_, _, uid, _ := hostpv.LeafOfHostVolume(host)
		return uid == leaf.UID && !hostpv.IsAbandonedVolume(host) && !hostpv.IsReleasedOrFailed(host)
	})
}

func (m *Model) unsettledHost(w world, pv *corev1.PersistentVolume) []string { //nolint:gocyclo // a table
	if m.isThere(pv) {
		return nil
	}
	held := controllerutil.ContainsFinalizer(pv, v1alpha1.FinalizerLeafVolume)
	_, name, uid, _ := hostpv.LeafOfHostVolume(pv)
	leaf := m.leafNamed(w, name)
	same := leaf != nil && leaf.UID == uid
	gone := pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != "" && m.rootReferredBy(w, pv) == nil
	switch policy := pv.Spec.PersistentVolumeReclaimPolicy; {
	case hostpv.IsAbandonedVolume(pv):
		if held {
			return []string{"an abandoned host PV keeps its finalizer"}
		}
	case !held && pv.DeletionTimestamp == nil:
	case gone && pv.DeletionTimestamp != nil && held:
		return []string{fmt.Sprintf("a host PV is Terminating (%s, %s)", pv.Status.Phase, policy)}
	case gone && same && (leaf.Status.Phase == corev1.VolumeAvailable || m.estranged(w, leaf)):
		return nil // the controller stuck reports why the disk is not destroyed
	case gone && same && m.lives(w, leaf):
		return nil // an admin changed the claimRef, but the claim that used the volume exists
	case gone && policy == corev1.PersistentVolumeReclaimDelete && same && leaf.Annotations[v1alpha1.AnnotationReclaimPolicy] == string(policy):
		return []string{"a host PV was released with policy Delete, and its disk is not destroyed"}
	case gone && policy == corev1.PersistentVolumeReclaimDelete && !same:
		return []string{"a host PV was released with policy Delete, and is left although its leaf PV was deleted or replaced"}
	case gone && policy == corev1.PersistentVolumeReclaimRecycle:
		return []string{"a host PV keeps policy Recycle"}
	case pv.Spec.ClaimRef == nil && pv.DeletionTimestamp != nil && held:
		return []string{"a free host PV is Terminating"}
	}
	return nil
}

func (m *Model) unsettledRoot(w world, c int, root, claim *corev1.PersistentVolumeClaim) []string { //nolint:gocyclo // a table
	current := false
	if claim != nil {
		origin, stamped := mirror.LeafOriginFromHost(here.HostID, claim)
		current = stamped && origin.UID == root.UID
	}
	switch root.Spec.VolumeName {
	case "":
		return m.unsettledUnbound(w, c, root)
	case elsewhereNames[c]:
		return m.unsettledElsewhere(root, current)
	}
	host := m.objects.pv(w.hostState.pvs[slices.Index(hostNames[:], root.Spec.VolumeName)])
	if m.isThere(host) {
		return m.unsettledElsewhere(root, current)
	}
	if m.withoutPromise(w, root).Report != nil || host != nil && hostpv.IsPromise(host) && !hostpv.ClaimRefHasUIDOf(host, root) && root.Status.Phase == corev1.ClaimLost {
		return nil // the controller promise reports the problem
	}
	if host != nil && hostpv.IsUnfulfilledPromise(host) && host.Status.Phase == corev1.VolumeBound {
		pod := m.objects.pod(w.pod)
		switch {
		case m.provisionedInVain(w.memberState, c):
			return nil
		case c == 0 && root.DeletionTimestamp == nil && m.podUses(w) && pod.DeletionTimestamp == nil && pod.Spec.NodeName == m.self.NodeName:
			return []string{"a Pod waits for its promise's disk"}
		case claim != nil:
			return []string{"a promise's leaf claim is left although no Pod needs it"}
		}
		return nil
	}
	if host != nil && hostpv.ReleasesWhenUnused(host) && !m.podUses(w) && host.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !hostpv.IsAbandonedVolume(host) {
		return []string{"a promise's disk is left although no Pod uses it"}
	}
	if leaf := m.leafNamed(w, root.Spec.VolumeName); host == nil && (leaf == nil && (root.Status.Phase == corev1.ClaimPending || root.Annotations[v1alpha1.AnnotationPlacedIn] == "") || leaf != nil && !stampedForClaim(leaf)) {
		return nil // host_claim reports that a Pending claim's volume does not exist, and the PV controller that a Bound claim's does not
	}
	if root.Status.Phase == corev1.ClaimPending && host != nil && host.Spec.ClaimRef != nil && host.Spec.ClaimRef.UID != "" && host.Spec.ClaimRef.UID != root.UID {
		return nil // the host's PV controller reports FailedBinding: another claim has or had the volume
	}
	if host == nil || host.Spec.ClaimRef == nil || host.Spec.ClaimRef.UID != root.UID || host.Status.Phase != corev1.VolumeBound || root.Status.Phase != corev1.ClaimBound {
		return []string{"a bound claim and its host PV do not match"}
	}
	_, name, uid, _ := hostpv.LeafOfHostVolume(host)
	leaf := m.leafNamed(w, name)
	if hostpv.IsAbandonedVolume(host) {
		return nil
	}
	if leaf == nil || leaf.UID != uid || !current || claim.Spec.VolumeName != leaf.Name || claim.Status.Phase != corev1.ClaimBound ||
		!hostpv.ClaimRefHasUIDOf(leaf, claim) || root.Annotations[v1alpha1.AnnotationPlacedIn] != m.self.ClusterID {
		return []string{"a bound claim lacks a complete volume in the member"}
	}
	wants, has := root.Spec.Resources.Requests[corev1.ResourceStorage], host.Spec.Capacity[corev1.ResourceStorage]
	if has.Cmp(wants) < 0 && leaf.DeletionTimestamp == nil && host.DeletionTimestamp == nil {
		return []string{"a claim was expanded, but its volume was not"}
	}
	return nil
}

// unsettledUnbound returns what is wrong with a claim that is not bound.
func (m *Model) unsettledUnbound(w world, c int, root *corev1.PersistentVolumeClaim) []string {
	promise := m.promiseOf(w, root)
	selected := root.Annotations[volumehelpers.AnnSelectedNode] != ""
	switch {
	case promise != nil && promise.DeletionTimestamp != nil: // the controller promise reports the problem
	case m.waits(c) && !selected: // no Pod needs the claim
	case m.withoutPromise(w, root).Phase == lifecycle.Unpromised: // host_claim reports why the class allows no promise
	case w.lacksLeafClass && !selected: // host_claim reports that no member has the class
	case w.lacksHostClass: // the host's PV controller reports that the class does not exist
	case m.provisionedInVain(w.memberState, c), m.provisionedInVain(w.second, c):
	case m.clones(c) && m.sourceOf(w, root).Locate(root).Refusal != nil: // host_claim reports the problem
	default:
		return []string{"a claim is Pending"}
	}
	return nil
}

// unsettledElsewhere returns what is wrong with a claim that has a volume in the other member. leaf
// reports whether the claim has a leaf claim in this member.
func (m *Model) unsettledElsewhere(root *corev1.PersistentVolumeClaim, leaf bool) []string {
	switch {
	case leaf:
		return []string{"a leaf claim is left although its root claim has a volume elsewhere"}
	case root.Annotations[v1alpha1.AnnotationPlacedIn] == m.self.ClusterID:
		return []string{"a claim is placed here although it has a volume elsewhere"}
	}
	return nil
}
