package model

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// move is a transition to another world.
type move struct {
	name string
	to   world
}

// moves collects the moves that change a world.
type moves struct {
	model *Model
	from  world
	made  []move
}

func (ms *moves) add(name string, change func(*world)) {
	to := ms.from
	if change(&to); to != ms.from {
		ms.made = append(ms.made, move{name, to})
	}
}

// kubernetes returns the moves of the controllers of both clusters, the provisioner, the scheduler,
// and the other member. If a move stays possible, it happens eventually.
func (m *Model) kubernetes(w world) []move {
	ms := &moves{model: m, from: w}
	for c := range claimNames {
		ms.bindClaim(hostSide, c)
		ms.schedule(c)
		ms.source(c)
		if m.second == nil {
			ms.otherMember(c)
		}
	}
	for n := range w.hostState.pvs {
		ms.syncVolume(hostSide, n)
		ms.endThere(n)
	}
	ms.finish(hostSide)
	for c := range claimNames {
		ms.promise(c)
	}
	ms.snapshot()
	ms.command()
	ms.runPod()
	ms.inMember()
	if m.second != nil {
		ms.inSecond()
	}
	if w.suspended != neither {
		ms.add("an admin confirms the restore", func(to *world) { to.suspended = neither })
	}
	if w.lagging != none {
		ms.add("the cache catches up", func(to *world) { to.follow() })
	}
	return ms.made
}

// inMember makes the moves of the member's controllers.
func (ms *moves) inMember() {
	for c := range claimNames {
		ms.bindClaim(memberSide, c)
		ms.provision(c)
		ms.bindFree(c)
		ms.resize(c)
	}
	for n := range ms.from.memberState.pvs {
		ms.syncVolume(memberSide, n)
		ms.reclaim(n)
	}
	ms.finish(memberSide)
}

// claimsAt and pvsAt return the part of a world that contains a side's objects.
func claimsAt(w *world, s side) []id {
	if s == hostSide {
		return w.roots[:]
	}
	return w.claims[:]
}

func pvsAt(w *world, s side) []id {
	if s == hostSide {
		return w.hostState.pvs[:]
	}
	return w.memberState.pvs[:]
}

func (s side) String() string { return [...]string{"host", "member", "second member"}[s] }

// bindClaim makes the PV controller's next write for a claim
// (kubernetes/pkg/controller/volume/persistentvolume: syncClaim).
func (ms *moves) bindClaim(s side, c int) { //nolint:gocyclo // as the PV controller decides
	m, w := ms.model, ms.from
	claim := m.objects.claim(claimsAt(&w, s)[c])
	if claim == nil {
		return
	}
	bound := metav1.HasAnnotation(claim.ObjectMeta, volumehelpers.AnnBindCompleted)
	name := claim.Spec.VolumeName
	for n, i := range pvsAt(&w, s) {
		pv := m.objects.pv(i)
		switch {
		case pv == nil || name != "" && name != pv.Name:
			continue
		case name == "" && !bound && pv.DeletionTimestamp == nil && volumehelpers.IsVolumeBoundToClaim(pv, claim),
			name != "" && !bound && (pv.Spec.ClaimRef == nil || volumehelpers.IsVolumeBoundToClaim(pv, claim)),
			bound && (pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == claim.UID):
			ms.bind(s, c, n)
		case name != "" && bound:
			ms.lose(s, c)
		}
	}
	if s == hostSide && name == elsewhereNames[c] {
		return
	}
	if bound && (name == "" || !slices.ContainsFunc(pvsAt(&w, s), func(i id) bool { pv := m.objects.pv(i); return pv != nil && pv.Name == name })) {
		ms.lose(s, c)
	}
}

// bind binds first the PV to the claim, and then the claim to the PV.
func (ms *moves) bind(s side, c, n int) {
	m := ms.model
	ms.add(s.String()+": the PV controller binds the PV", func(to *world) {
		claim := m.objects.claim(claimsAt(to, s)[c])
		pvsAt(to, s)[n] = m.objects.changePV(pvsAt(to, s)[n], func(pv *corev1.PersistentVolume) {
			if pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "" {
				pv.Spec.ClaimRef = reference(claim)
				metav1.SetMetaDataAnnotation(&pv.ObjectMeta, volumehelpers.AnnBoundByController, "yes")
				if m.bounds.Writes {
					return // the status is a separate write
				}
			}
			pv.Status.Phase = corev1.VolumeBound
		})
	})
	if pv := m.objects.pv(pvsAt(&ms.from, s)[n]); pv.Status.Phase != corev1.VolumeBound || pv.Spec.ClaimRef == nil {
		return
	}
	ms.add(s.String()+": the PV controller binds the claim", func(to *world) {
		pv := m.objects.pv(pvsAt(to, s)[n])
		claimsAt(to, s)[c] = m.objects.changeClaim(claimsAt(to, s)[c], func(claim *corev1.PersistentVolumeClaim) {
			bound := claim.Spec.VolumeName == pv.Name && metav1.HasAnnotation(claim.ObjectMeta, volumehelpers.AnnBindCompleted)
			claim.Spec.VolumeName = pv.Name
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volumehelpers.AnnBindCompleted, "yes")
			if m.bounds.Writes && !bound {
				return // the status is a separate write
			}
			claim.Status.Phase = corev1.ClaimBound
		})
	})
}

func (ms *moves) lose(s side, c int) {
	ms.add(s.String()+": the claim is Lost", func(to *world) {
		claimsAt(to, s)[c] = ms.model.objects.changeClaim(claimsAt(to, s)[c], func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimLost })
	})
}

// syncVolume makes the PV controller's next write for a PV (syncVolume).
func (ms *moves) syncVolume(s side, n int) { //nolint:gocyclo // as the PV controller decides
	m, w := ms.model, ms.from
	pv := m.objects.pv(pvsAt(&w, s)[n])
	if pv == nil {
		return
	}
	to := func(what string, change func(*corev1.PersistentVolume)) {
		ms.add(s.String()+": the PV controller "+what, func(to *world) { pvsAt(to, s)[n] = m.objects.changePV(pvsAt(to, s)[n], change) })
	}
	phase := func(phase corev1.PersistentVolumePhase) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Status.Phase = phase }
	}
	var claim *corev1.PersistentVolumeClaim // the claim to which the PV refers
	if ref := pv.Spec.ClaimRef; ref != nil {
		if c := slices.Index(claimNames[:], ref.Name); c >= 0 {
			claim = m.objects.claim(claimsAt(&w, s)[c])
		}
	}
	ended := pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed
	switch ref := pv.Spec.ClaimRef; {
	case ref == nil || ref.UID == "":
		to("sets the PV to Available", phase(corev1.VolumeAvailable))
	case s == memberSide && ref.UID == theirs:
	case claim == nil || claim.UID != ref.UID:
		if !ended {
			to("releases the PV", phase(corev1.VolumeReleased))
		} else if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
			to("cannot recycle the PV", phase(corev1.VolumeFailed))
		}
	case claim.Spec.VolumeName == "":
	case claim.Spec.VolumeName == pv.Name:
		to("sets the PV to Bound", phase(corev1.VolumeBound))
	case pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && metav1.HasAnnotation(pv.ObjectMeta, volumehelpers.AnnDynamicallyProvisioned):
		if !ended {
			to("releases the PV of a claim that has another PV", phase(corev1.VolumeReleased))
		}
	default:
		to("unbinds the PV of a claim that has another PV", func(pv *corev1.PersistentVolume) {
			if metav1.HasAnnotation(pv.ObjectMeta, volumehelpers.AnnBoundByController) {
				pv.Spec.ClaimRef = nil
				delete(pv.Annotations, volumehelpers.AnnBoundByController)
			} else {
				pv.Spec.ClaimRef = pv.Spec.ClaimRef.DeepCopy()
				pv.Spec.ClaimRef.UID = ""
			}
			pv.Status.Phase = corev1.VolumeAvailable
		})
	}
}

// reclaim makes the provisioner's move for a Released PV.
func (ms *moves) reclaim(n int) {
	pv := ms.model.objects.pv(ms.from.memberState.pvs[n])
	if pv != nil && pv.Status.Phase == corev1.VolumeReleased && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		ms.add("member: the provisioner destroys the disk", func(to *world) { to.memberState.pvs[n], to.disks[n], to.mirrored[n] = 0, false, false })
	}
}

// resize makes the write of the member's resizer for a leaf claim that requests more capacity: it
// expands the PV.
func (ms *moves) resize(c int) {
	m := ms.model
	claim := m.objects.claim(ms.from.claims[c])
	if !m.bounds.Asks || claim == nil || claim.Status.Phase != corev1.ClaimBound {
		return
	}
	for n, i := range ms.from.memberState.pvs {
		pv := m.objects.pv(i)
		if pv == nil || !hostpv.ClaimRefHasUIDOf(pv, claim) {
			continue
		}
		ms.add("member: the resizer expands the volume", func(to *world) {
			to.memberState.pvs[n] = m.objects.changePV(i, func(pv *corev1.PersistentVolume) { pv.Spec.Capacity = claim.Spec.Resources.Requests })
		})
	}
}

// promise makes the only write of the controller "promise".
func (ms *moves) promise(c int) {
	m := ms.model
	root := m.objects.claim(ms.from.roots[c])
	if root == nil || m.withoutPromise(ms.from, root).StepOwnedBy(lifecycle.Promise) != lifecycle.CreatePromise {
		return
	}
	pv := hostpv.CurrentPromiseFor(root, hostClass(ms.from.hostPolicy.reclaim(), ms.from.mode))
	n := slices.Index(hostNames[:], pv.Name)
	ms.add("promise: creates the promise", func(to *world) {
		pv.UID = m.unused(*to, hostUIDs[n]...)
		pv.Finalizers = append(pv.Finalizers, pvProtection)
		pv.Status.Phase = corev1.VolumePending
		pv.CreationTimestamp = to.now()
		to.hostState.pvs[n] = m.objects.keep(pv)
	})
}

// withoutPromise returns the plan of the controller "promise" for a claim without a promise. It has
// none for a claim whose promise exists.
func (m *Model) withoutPromise(w world, root *corev1.PersistentVolumeClaim) lifecycle.Plan {
	if n := slices.Index(hostNames[:], cmp.Or(root.Spec.VolumeName, hostpv.PromiseName(root.UID))); w.mode == mirrors || n < 0 || w.hostState.pvs[n] != 0 {
		return lifecycle.Plan{}
	}
	var class *storagev1.StorageClass
	if !w.lacksHostClass {
		class = hostClass(w.hostPolicy.reclaim(), w.mode)
	}
	return lifecycle.NextPlan(&volume.Observed{Root: root, Class: class})
}

// runPod makes the moves that bind a Pod to the member's node once its claim is bound, that remove a
// deleted Pod, and with Needs, that let it complete.
func (ms *moves) runPod() {
	m := ms.model
	pod, root := m.objects.pod(ms.from.pod), m.objects.claim(ms.from.roots[0])
	switch {
	case pod == nil:
	case pod.DeletionTimestamp != nil:
		ms.add("host: the Pod is deleted", func(to *world) { to.pod = 0 })
	case pod.Spec.NodeName == "" && root != nil && root.DeletionTimestamp == nil && root.Status.Phase == corev1.ClaimBound:
		ms.add("host: the scheduler binds the Pod to the member's node", func(to *world) {
			to.pod = m.objects.changePod(to.pod, func(pod *corev1.Pod) { pod.Spec.NodeName = m.self.NodeName })
		})
	case m.bounds.Needs && pod.Status.Phase == corev1.PodPending && root != nil && m.diskOf(ms.from, root) >= 0:
		ms.add("member: the Pod completes", func(to *world) {
			to.pod = m.objects.changePod(to.pod, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
		})
	}
}

// finish removes Kubernetes' own finalizers from deleted objects.
func (ms *moves) finish(s side) {
	m := ms.model
	for c, i := range claimsAt(&ms.from, s) {
		if claim := m.objects.claim(i); claim != nil && claim.DeletionTimestamp != nil && !mirrorsnapshot.HasPendingSnapshot(claim) {
			ms.add(s.String()+": the claim is deleted", func(to *world) { claimsAt(to, s)[c] = 0 })
		}
	}
	for n, i := range pvsAt(&ms.from, s) {
		pv := m.objects.pv(i)
		if pv == nil || pv.DeletionTimestamp == nil || pv.Status.Phase == corev1.VolumeBound || !controllerutil.ContainsFinalizer(pv, pvProtection) {
			continue
		}
		ms.add(s.String()+": the PV is no longer protected", func(to *world) {
			without := pv.DeepCopy()
			controllerutil.RemoveFinalizer(without, pvProtection)
			pvsAt(to, s)[n] = m.left(without)
			to.theirs = to.theirs || s == memberSide
		})
	}
}

// provision makes the provisioner's move that creates a leaf claim's volume. A repeated call
// returns the existing disk.
func (ms *moves) provision(c int) {
	m := ms.model
	claim := m.objects.claim(ms.from.claims[c])
	if claim == nil || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return
	}
	n := slices.Index(leafNames[:], leafName(claim.UID))
	if ms.from.memberState.pvs[n] != 0 || ms.from.lacksLeafClass {
		return
	}
	data, ready := m.contentFor(ms.from, claim)
	if !ready {
		return
	}
	ms.add("member: the provisioner creates a volume", func(to *world) {
		uid := m.unused(*to, volumeUIDs("l", leafNames[n])...)
		if uid == "" {
			return
		}
		pv := newLeafVolume(claim, uid, to.leafPolicy.reclaim())
		pv.CreationTimestamp = to.now()
		if data != "" {
			metav1.SetMetaDataAnnotation(&pv.ObjectMeta, copyOf, string(data))
		}
		to.memberState.pvs[n] = m.objects.keep(pv)
		if !to.disks[n] {
			to.mirrored[n] = false
		}
		to.disks[n] = true
	})
}

// schedule makes the moves by which the scheduler selects a member's node for a claim without a
// volume, or a free volume for the claim.
func (ms *moves) schedule(c int) {
	m := ms.model
	root := m.objects.claim(ms.from.roots[c])
	if root == nil || root.DeletionTimestamp != nil || root.Spec.VolumeName != "" || root.Annotations[volumehelpers.AnnSelectedNode] != "" || ms.mirroredFor(root) {
		return
	}
	switch {
	case ms.from.mode != mirrors && !m.promiseIsFree(ms.from, root):
		return // a claim is bound to its promise before the scheduler considers it
	case ms.from.mode == mirrors && !m.waits(c):
		ms.selectMember(c)
	}
	for n, i := range ms.from.hostState.pvs {
		pv := m.objects.pv(i)
		if pv != nil && pv.Spec.ClaimRef == nil && pv.Status.Phase == corev1.VolumeAvailable && pv.DeletionTimestamp == nil && root.Annotations[v1alpha1.AnnotationPlacedIn] == "" && selects(root, pv) {
			ms.add("host: the scheduler selects a free PV for the claim", func(to *world) {
				if c == copyOfMove {
					to.damage = "I2: the claim of a move's copy is bound to a volume that existed before"
				}
				to.hostState.pvs[n] = m.objects.changePV(to.hostState.pvs[n], func(pv *corev1.PersistentVolume) {
					pv.Spec.ClaimRef = reference(root)
					metav1.SetMetaDataAnnotation(&pv.ObjectMeta, volumehelpers.AnnBoundByController, "yes")
				})
			})
		}
	}
}

// selectMember makes the moves by which the scheduler selects a member's node. A member without the
// class has no capacity for it.
func (ms *moves) selectMember(c int) {
	m := ms.model
	if ms.from.lacksHostClass || ms.from.lacksLeafClass {
		return
	}
	ms.add("host: the scheduler selects the member's node", func(to *world) { m.selectNode(to, c, here.NodeName) })
	if m.second != nil {
		ms.add("host: the scheduler selects the second member's node", func(to *world) { m.selectNode(to, c, there.NodeName) })
	}
}

func (ms *moves) mirroredFor(root client.Object) bool {
	return slices.ContainsFunc(ms.from.hostState.pvs[:], func(i id) bool {
		pv := ms.model.objects.pv(i)
		return pv != nil && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == root.GetUID()
	})
}

// selectNode selects a node as the scheduler does. The PV controller then requests the volume.
func (m *Model) selectNode(to *world, c int, node string) {
	to.roots[c] = m.objects.changeClaim(to.roots[c], func(root *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&root.ObjectMeta, volumehelpers.AnnSelectedNode, node)
		metav1.SetMetaDataAnnotation(&root.ObjectMeta, volumehelpers.AnnStorageProvisioner, v1alpha1.ProvisionerName)
	})
}

// otherMember makes the other member's moves for a claim whose selected node is, or was, in that
// member.
func (ms *moves) otherMember(c int) {
	m := ms.model
	root := m.objects.claim(ms.from.roots[c])
	if root == nil || root.Spec.VolumeName != "" || root.DeletionTimestamp != nil {
		return
	}
	placed, asked := root.Annotations[v1alpha1.AnnotationPlacedIn], root.Annotations[volumehelpers.AnnSelectedNode] == there.NodeName
	change := func(what string, change func(*corev1.PersistentVolumeClaim)) {
		ms.add("the other member "+what, func(to *world) { to.roots[c] = m.objects.changeClaim(to.roots[c], change) })
	}
	switch {
	case asked && placed == "":
		change("places the claim", func(root *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&root.ObjectMeta, v1alpha1.AnnotationPlacedIn, there.ClusterID)
		})
	case asked && placed == there.ClusterID:
		change("has a volume for the claim", func(root *corev1.PersistentVolumeClaim) {
			root.Spec.VolumeName, root.Status.Phase = elsewhereNames[c], corev1.ClaimBound
			metav1.SetMetaDataAnnotation(&root.ObjectMeta, volumehelpers.AnnBindCompleted, "yes")
		})
	case placed == there.ClusterID:
		change("releases the claim", func(root *corev1.PersistentVolumeClaim) { delete(root.Annotations, v1alpha1.AnnotationPlacedIn) })
	}
}

// fulfillThere places a promise's claim in the other member, and records a disk on the promise.
func (m *Model) fulfillThere(to *world, n int) {
	pv := m.objects.pv(to.hostState.pvs[n])
	leaf := newLeafVolume(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "there"}}, "l-there", corev1.PersistentVolumeReclaimDelete)
	to.hostState.pvs[n] = m.objects.keep(hostpv.FulfillPromise(hostpv.PromiseWithMember(pv, there, nil), leaf, corev1.PersistentVolumeReclaimDelete, there))
	for c, i := range to.roots {
		if root := m.objects.claim(i); root != nil && root.UID == pv.Spec.ClaimRef.UID {
			to.roots[c] = m.objects.changeClaim(i, func(root *corev1.PersistentVolumeClaim) {
				metav1.SetMetaDataAnnotation(&root.ObjectMeta, v1alpha1.AnnotationPlacedIn, there.ClusterID)
			})
		}
	}
}

// isThere reports whether a host PV represents a volume in the other member.
func (m *Model) isThere(pv *corev1.PersistentVolume) bool {
	return pv != nil && pv.Labels[v1alpha1.LabelClusterID] == m.other.ClusterID
}

// endThere makes the other member's move for a promise whose claim was deleted.
func (ms *moves) endThere(n int) {
	if ms.model.second != nil {
		return // the second member has its own controllers
	}
	if pv := ms.model.objects.pv(ms.from.hostState.pvs[n]); ms.model.isThere(pv) && hostpv.IsReleasedOrFailed(pv) && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		ms.add("the other member destroys the disk of the promise", func(to *world) { to.hostState.pvs[n] = 0 })
	}
}
