package moves

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
)

// settle lets Kubernetes and Xylem act until nothing changes.
func (w *world) settle() {
	for w.act() {
	}
}

// act makes the first possible step, and reports whether there was one.
func (w *world) act() bool {
	for _, pod := range all[*corev1.Pod](w, pods) {
		if w.actOnPod(pod) {
			return true
		}
	}
	for _, claim := range all[*corev1.PersistentVolumeClaim](w, claims) {
		if w.actOnClaim(claim) {
			return true
		}
	}
	for _, pv := range all[*corev1.PersistentVolume](w, volumes) {
		if w.actOnVolume(pv) {
			return true
		}
	}
	return w.withdraw()
}

// actOnPod starts a Pod whose claim is bound, and removes a Pod that was deleted.
func (w *world) actOnPod(pod *corev1.Pod) bool {
	claim := w.claim(podspec.ClaimNamesOfPod(pod)[0])
	member, known := w.placeOf(pod, claim)
	switch {
	case pod.DeletionTimestamp != nil:
		if pod.Status.Phase == corev1.PodRunning && known && !w.connected(member) {
			return false
		}
		delete(w.objects, keyOf(pod))
		return true
	case pod.Status.Phase != corev1.PodPending, claim == nil, claim.DeletionTimestamp != nil, claim.Status.Phase != corev1.ClaimBound:
		return false
	}
	pv := w.volume(claim.Spec.VolumeName)
	d, there := w.disks[claim.Spec.VolumeName]
	if pv == nil || !there || d.destroyed || member != d.in || !w.connected(d.in) || d.holder != claim.UID {
		return false
	}
	change(w, pod, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	})
	if pod.Name == userPod {
		w.wrote(claim.Spec.VolumeName)
	}
	return true
}

// placeOf returns the member in which a Pod runs or can run. It is not known for a Pod of the user
// whose claim has no volume.
func (w *world) placeOf(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) (int, bool) {
	if pod.Name != userPod {
		cluster := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
		return slices.IndexFunc(places[:], func(p mirror.Member) bool { return p.ClusterID == cluster }), true
	}
	if claim != nil {
		if pv := w.volume(claim.Spec.VolumeName); pv != nil {
			return memberOf(pv), true
		}
	}
	return from, false
}

func (w *world) used(claim string) bool {
	return slices.ContainsFunc(all[*corev1.Pod](w, pods), func(pod *corev1.Pod) bool { return slices.Contains(podspec.ClaimNamesOfPod(pod), claim) })
}

// actOnClaim does what the PV controller, the scheduler and the provisioner do for a claim.
func (w *world) actOnClaim(claim *corev1.PersistentVolumeClaim) bool {
	phase := func(phase corev1.PersistentVolumeClaimPhase) bool {
		if claim.Status.Phase == phase {
			return false
		}
		change(w, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = phase })
		return true
	}
	if claim.DeletionTimestamp != nil {
		if w.used(claim.Name) {
			return false
		}
		delete(w.objects, keyOf(claim))
		return true
	}
	if claim.Spec.VolumeName == "" {
		return w.find(claim)
	}
	pv := w.volume(claim.Spec.VolumeName)
	if pv == nil {
		return claim.Status.Phase == corev1.ClaimBound && phase(corev1.ClaimLost)
	}
	switch {
	case pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Namespace == namespace && pv.Spec.ClaimRef.Name == claim.Name && pv.Spec.ClaimRef.UID == "":
		change(w, pv, func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: claims, Namespace: namespace, Name: claim.Name, UID: claim.UID}
		})
		return true
	case pv.Spec.ClaimRef.UID != claim.UID:
		return claim.Status.Phase == corev1.ClaimBound && phase(corev1.ClaimLost)
	case pv.Status.Phase != corev1.VolumeBound:
		change(w, pv, func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound })
		return true
	}
	if d, there := w.disks[pv.Name]; (d.destroyed || !there) && w.connected(memberOf(pv)) && len(claim.Status.Conditions) == 0 {
		change(w, claim, func(claim *corev1.PersistentVolumeClaim) {
			claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
				Type: v1alpha1.ClaimPlaced, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonVolumeLost, Message: "the volume was deleted in the member"}}
		})
		return true
	}
	return phase(corev1.ClaimBound)
}

// find binds a claim without a volume to the volume that is reserved for it, or to a new one in the
// member of the Pod that uses the claim.
func (w *world) find(claim *corev1.PersistentVolumeClaim) bool {
	bind := func(volume string) {
		change(w, claim, func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.VolumeName, claim.Status.Phase = volume, corev1.ClaimBound
		})
	}
	for _, pv := range all[*corev1.PersistentVolume](w, volumes) {
		if ref := pv.Spec.ClaimRef; ref != nil && ref.Name == claim.Name && (ref.UID == "" || ref.UID == claim.UID) {
			change(w, pv, func(pv *corev1.PersistentVolume) {
				pv.Spec.ClaimRef.UID, pv.Status.Phase = claim.UID, corev1.VolumeBound
			})
			bind(pv.Name)
			return true
		}
	}
	for _, pod := range all[*corev1.Pod](w, pods) {
		if pod.DeletionTimestamp != nil || !slices.Contains(podspec.ClaimNamesOfPod(pod), claim.Name) {
			continue
		}
		member, _ := w.placeOf(pod, claim)
		if !w.connected(member) {
			continue
		}
		if pv := w.available(claim, member); pv != nil {
			change(w, pv, func(pv *corev1.PersistentVolume) { // the next call binds the claim
				pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: claims, Namespace: namespace, Name: claim.Name, UID: claim.UID}
			})
			return true
		}
		pv := mirrorOf(claim, w.uid(), w.policy, member, w.offered && member == to)
		d := disk{in: member, holder: claim.UID}
		if w.offered && member == to {
			pv.Name, d.content, w.offered = offeredDisk, w.disks[offeredDisk].content, false
		}
		w.put(pv)
		w.disks[pv.Name] = d
		bind(pv.Name)
		return true
	}
	return false
}

// available returns the host PV in a member that the scheduler binds a claim to before it lets the
// member provision another one, or nil. No volume of a world has labels that a selector matches.
func (w *world) available(claim *corev1.PersistentVolumeClaim, member int) *corev1.PersistentVolume {
	for _, pv := range all[*corev1.PersistentVolume](w, volumes) {
		if pv.Spec.ClaimRef == nil && pv.Status.Phase == corev1.VolumeAvailable && memberOf(pv) == member && claim.Spec.Selector == nil {
			return pv
		}
	}
	return nil
}

// actOnVolume does what the PV controller and Xylem do for a host PV.
func (w *world) actOnVolume(pv *corev1.PersistentVolume) bool {
	d, there := w.disks[pv.Name]
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		if pv.Status.Phase == corev1.VolumeAvailable {
			return false
		}
		change(w, pv, func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeAvailable })
		return true
	}
	claim := w.withUID(ref.UID)
	if claim == nil && pv.Status.Phase != corev1.VolumeReleased {
		change(w, pv, func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased })
		return true
	}
	if !there || !w.connected(d.in) {
		return false
	}
	if w.lost[d.holder] && d.holder != ref.UID { // volume.LastClaimLost
		d.holder = ref.UID
		w.disks[pv.Name] = d
		change(w, pv, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})
		return true
	}
	if claim != nil && d.holder != claim.UID {
		d.holder = claim.UID
		w.disks[pv.Name] = d
		return true
	}
	if claim == nil && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !w.lost[ref.UID] {
		d.destroyed, d.holder = true, ""
		w.disks[pv.Name] = d
		delete(w.objects, keyOf(pv))
		return true
	}
	return false
}

// withdraw removes the leaf claim of a claim that was deleted, and represents a disk in the host
// again if a restore lost its host PV, but not its claim.
func (w *world) withdraw() bool {
	for name, d := range w.disks {
		if d.destroyed || d.holder == "" || !w.connected(d.in) {
			continue
		}
		claim, pv := w.withUID(d.holder), w.volume(name)
		switch {
		case pv == nil && claim != nil && claim.DeletionTimestamp == nil && (claim.Spec.VolumeName == "" || claim.Spec.VolumeName == name):
			pv := mirrorOf(claim, w.uid(), w.policy, d.in, name == offeredDisk)
			pv.Name = name
			w.put(pv)
			return true
		case claim == nil && !w.lost[d.holder] && pv != nil:
			d.holder = ""
			w.disks[name] = d
			return true
		}
	}
	return false
}

// wrote lets a Pod of the user write to a disk.
func (w *world) wrote(volume string) {
	d := w.disks[volume]
	if w.newest != "" && d.content != w.newest {
		w.problem("a Pod gets content %q, but the user wrote %q last", d.content, w.newest)
	}
	w.calm = false
	if w.writes == 0 {
		return
	}
	w.writes--
	before := d.content
	d.content += fmt.Sprint(w.writes)
	w.disks[volume] = d
	w.data = slices.DeleteFunc(w.data, func(x written) bool { return x.content == before })
	w.data = append(w.data, written{d.content, w.restores})
	w.newest = d.content
}
