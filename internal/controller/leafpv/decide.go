package leafpv

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// observed is all that a decision is taken on; nil is absent.
type observed struct {
	member mirror.Member
	// leaf PV, and whether it carries our stamp.
	leaf    *corev1.PersistentVolume
	stamped bool
	// claim is the leaf claim of ours that names the PV; origin is its origin,
	// else the PV's own stamp.
	claim               *corev1.PersistentVolumeClaim
	claimOrigin, origin mirror.Origin
	// root claim of the origin, UID checked; asking: another claim of that namespace
	// and name, that asks for the volume by name. class and tenant, the UID of its
	// namespace, are those of whichever of the two is there.
	root, asking *corev1.PersistentVolumeClaim
	class        *storagev1.StorageClass
	tenant       types.UID
	// host PV that stands for this very leaf PV; nameTaken and suffixTaken: there is
	// none, and another PV has its name, or the one with the suffix.
	host                   *corev1.PersistentVolume
	nameTaken, suffixTaken bool
	// remembered: the host has a PV for a leaf PV of that name, of whatever UID, or the
	// leaf claim may come from a backup of the member.
	remembered bool
	// replaced is a host PV that represents a leaf PV of this name and another UID, if none
	// represents this one: the member has re-created it, perhaps for the same disk.
	replaced *corev1.PersistentVolume
	// lost: the root is bound to a promise, its own or one that it uses again, and the
	// host has no PV of that name.
	lost bool
	// promise is the promise for the claim of the origin, fulfilled or not, if no host
	// PV represents this leaf PV.
	promise *corev1.PersistentVolume
}

type decision interface{ decision() }

type (
	nothing struct{}
	// orphan: stamped, and without a root. Reported, never destroyed here.
	orphan struct{}
	// surplus: the root has, or is to have, its volume elsewhere.
	surplus struct{ why string }
	// unused: it may be the root's own disk, and the host PV that the root is bound to does
	// not represent it.
	unused struct{ reason, why string }
	// patchLeaf stamps the leaf PV, holds it at Retain, or points it at its new claim.
	patchLeaf struct{ after *corev1.PersistentVolume }
	// create the host PV.
	create struct{ host *corev1.PersistentVolume }
	// adopt makes the host PV of a volume that was let go of, for the claim that asks
	// for it, once both are proven to be as they were seen.
	adopt struct{ host *corev1.PersistentVolume }
	// patchHost keeps the host PV current.
	patchHost struct{ after *corev1.PersistentVolume }
	// fulfil records the leaf PV on the promise that it was made for.
	fulfil struct{ after *corev1.PersistentVolume }
)

func (nothing) decision()   {}
func (orphan) decision()    {}
func (surplus) decision()   {}
func (unused) decision()    {}
func (patchLeaf) decision() {}
func (create) decision()    {}
func (adopt) decision()     {}
func (patchHost) decision() {}
func (fulfil) decision()    {}

// suspicious reports whether a volume may have no root, by the caches: a reason
// for a live look at all of them.
func suspicious(o observed, d decision) bool {
	switch d.(type) {
	case orphan, surplus:
		return true
	}
	// It may have been finished for a claim of ours that had been withdrawn.
	return o.leaf != nil && !o.stamped && o.claim == nil && o.leaf.Spec.ClaimRef != nil &&
		o.leaf.Status.Phase == corev1.VolumeReleased && o.leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

func decide(o observed) decision {
	switch {
	case o.leaf == nil, o.claim == nil && !o.stamped:
		return nothing{} // gone, or none of ours
	case o.root == nil:
		return o.withoutRoot()
	}
	if why := o.mistaken(); why != nil {
		return o.keep(*why)
	}
	if why := o.elsewhere(); why != "" {
		return surplus{why}
	}
	if o.root.Annotations[v1alpha1.AnnotationPlacedIn] == "" && !o.own() {
		return nothing{} // whether it is placed here, root_pvc decides, and reports
	}
	if o.host != nil && (mirror.Releasing(o.host) || mirror.Ended(o.host)) {
		return o.current() // root_pv destroys the leaf: no Pod uses it, or the root is gone, which the cache may not show yet
	}
	if o.claim == nil {
		return o.unclaimed()
	}
	if !mirror.HeldBy(o.leaf, o.claim) {
		return o.repoint()
	}
	if o.leaf.Status.Phase != corev1.VolumeBound || o.claim.Status.Phase != corev1.ClaimBound {
		return nothing{} // the member's part
	}
	if after := changed(o.leaf, o.hold); after != nil {
		return patchLeaf{after}
	}
	return o.shown()
}

// terminating: somebody in the member has deleted the leaf PV. Kubernetes keeps it while it is
// Bound, so it is held like any other; but nothing is begun with it any more.
func (o observed) terminating() bool { return o.leaf.DeletionTimestamp != nil }

// shown: the leaf PV is held, and its root is to have it.
func (o observed) shown() decision {
	switch {
	case o.host != nil:
		return o.current()
	case o.terminating():
		return nothing{} // root_pvc says why the claim waits
	case mirror.NamesPromise(o.root.Spec.VolumeName):
		return o.fulfil()
	}
	return o.create()
}

// withoutRoot: a host PV without a claim is kept current all the same; its
// finalizer is put back if it was let go of when its cluster was deregistered.
// Where either side retains, the leaf PV stands at Retain: also if it was put to
// Delete when both sides said so, and an admin chose Retain then.
func (o observed) withoutRoot() decision {
	switch {
	case o.host == nil && o.replaced != nil && o.changedToKeep() != nil:
		return o.keep(nothing{}) // root_pv deletes its leaf claim then
	case !o.stamped && o.keepsData():
		return patchLeaf{changed(o.leaf, o.hold)} // it outlives its claim, and is not to be forgotten
	case !o.stamped:
		return nothing{} // never mirrored: root_pvc withdraws it
	case o.host == nil && o.adoptable():
		host := mirror.HostVolume(o.leaf, o.asking, corev1.PersistentVolumeReclaimRetain, o.member)
		host.Name = o.asking.Spec.VolumeName
		return adopt{host}
	case o.host == nil && o.mayFulfil():
		return o.fulfil() // so that root_pv ends it in order
	case o.host == nil:
		return o.keep(orphan{}) // root_pv may have set it to Delete for a host PV that was abandoned then
	case mirror.Abandoned(o.host):
		return nothing{} // the leaf PV is its member's
	case (o.host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || policyOf(o.leaf) != corev1.PersistentVolumeReclaimDelete || o.freed()) &&
		o.leaf.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return o.unclaimed()
	}
	return o.current()
}

// keepsData reports whether the volume of a leaf claim without a root is to outlive it,
// although it has no stamp: the member retains it, or it may have been mirrored before the
// member was restored. root_pvc destroys the others.
func (o observed) keepsData() bool {
	return o.leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain ||
		o.remembered && mirror.HeldBy(o.leaf, o.claim)
}

// freed reports whether an admin cleared the host PV's claimRef, so that another claim may
// have the volume, or has it already. root_pv may have set the leaf PV to Delete before.
func (o observed) freed() bool {
	ref := o.host.Spec.ClaimRef
	if ref == nil {
		return o.host.Status.Phase == corev1.VolumeAvailable
	}
	return ref.UID != o.origin.UID && !mirror.Ended(o.host) && !mirror.Releasing(o.host)
}

// keep gives a leaf PV that no host PV represents policy Retain, and the stamp if a leaf
// claim of ours holds it; then comes what else is decided.
func (o observed) keep(then decision) decision {
	if after := o.changedToKeep(); after != nil {
		return patchLeaf{after}
	}
	return then
}

func (o observed) changedToKeep() *corev1.PersistentVolume {
	switch {
	case mirror.HeldBy(o.leaf, o.claim):
		return changed(o.leaf, o.hold)
	case o.stamped:
		return changed(o.leaf, func(after *corev1.PersistentVolume) {
			after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})
	}
	return nil
}

// unclaimed: root_pvc makes the leaf claim anew; until then, too, nothing that
// happens in the member alone destroys the data.
func (o observed) unclaimed() decision {
	if o.leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		if o.root != nil && o.host == nil && o.promised() {
			return o.fulfil() // so that the leaf claim is made for this volume, not for another
		}
		return nothing{}
	}
	return patchLeaf{changed(o.leaf, func(after *corev1.PersistentVolume) {
		after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})}
}

// own reports whether the root is bound to this very volume, or about to be, whatever is
// recorded of its place.
func (o observed) own() bool {
	switch {
	case o.host == nil:
		return false
	case o.root.Spec.VolumeName == "":
		return o.host.Spec.ClaimRef != nil && o.host.Spec.ClaimRef.UID == o.root.UID
	}
	return o.root.Spec.VolumeName == o.host.Name
}

// mistaken says why the root's volume in the host does not represent the leaf's, although
// it has, or had, its name: it may be the root's own disk, and nobody is to delete it.
func (o observed) mistaken() *unused {
	name := o.root.Spec.VolumeName
	switch {
	case o.host != nil:
		return nil
	case o.replaced != nil && (name == o.replaced.Name || name == "" && o.replaced.Spec.ClaimRef != nil && o.replaced.Spec.ClaimRef.UID == o.root.UID):
		return &unused{v1alpha1.ReasonVolumeReplaced, fmt.Sprintf("member %q has re-created it under its name, and volume %q of the claim represents the earlier one. "+
			"To use it, make sure that its disk is the right one, then delete the claim and create it again with volumeName %q", o.member.Registration, o.replaced.Name, o.leaf.Name)}
	case mirror.StandsFor(name, o.leaf.Name, o.member.ClusterID) && o.hostName(o.root) != name:
		return &unused{v1alpha1.ReasonVolumeMismatch, fmt.Sprintf("volume %q, which the claim is bound to, does not represent it: another volume has that name. Find out which of the two has the claim's data before you delete either", name)}
	}
	return nil
}

// elsewhere says why the leaf's volume is not the root's: I3.
func (o observed) elsewhere() string {
	if o.own() {
		return ""
	}
	if placed := o.root.Annotations[v1alpha1.AnnotationPlacedIn]; placed != "" && placed != o.member.ClusterID {
		return fmt.Sprintf("the claim is placed in cluster %q", placed)
	}
	if name := o.root.Spec.VolumeName; name != "" && !o.promised() && (o.host == nil && o.hostName(o.root) != name || o.host != nil && name != o.host.Name) {
		return "the claim is bound to volume " + name
	}
	return ""
}

// promised reports whether the root is bound to its promise, and that is not
// fulfilled by another volume. A promise that is not there is not seen yet, or lost
// and about to be made again.
func (o observed) promised() bool {
	if o.promise == nil {
		return o.host == nil && (o.lost || o.root.Spec.VolumeName == mirror.PromiseName(o.root.UID))
	}
	return o.promise.Name == o.root.Spec.VolumeName && mirror.IsUnfulfilled(o.promise)
}

// mayFulfil reports whether the promise is this member's to fulfil.
func (o observed) mayFulfil() bool {
	return o.promise != nil && mirror.IsPromiseIn(o.promise, o.member.ClusterID)
}

// fulfil the promise, once root_pvc has recorded on it that it is placed here.
func (o observed) fulfil() decision {
	if !o.mayFulfil() || o.terminating() {
		return nothing{}
	}
	return fulfil{mirror.Fulfil(o.promise, o.leaf, policyOf(o.leaf), o.member)}
}

// repoint points a volume at the leaf claim that asks for it, in one update,
// never passing through Available: only when the host says that the claim's
// root is bound to this volume. One that is Bound is in use, perhaps by a claim
// of the member's own, or is about to be Released, which wakes us.
func (o observed) repoint() decision {
	if !o.stamped || o.terminating() || o.leaf.Status.Phase == corev1.VolumeBound || o.host == nil || o.host.Spec.ClaimRef == nil || o.host.Spec.ClaimRef.UID != o.root.UID || o.claim.DeletionTimestamp != nil {
		return nothing{}
	}
	return patchLeaf{changed(o.leaf, func(after *corev1.PersistentVolume) {
		o.hold(after)
		after.Spec.ClaimRef = &corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim",
			Namespace: o.claim.Namespace, Name: o.claim.Name, UID: o.claim.UID,
		}
	})}
}

// hold puts the stamp of its claim's origin and policy Retain on the leaf PV, and notes
// of the policy that the member had given it, and of whose it is.
func (o observed) hold(after *corev1.PersistentVolume) {
	if after.Annotations[v1alpha1.AnnotationReclaimPolicy] == "" {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationReclaimPolicy, string(o.leaf.Spec.PersistentVolumeReclaimPolicy))
	}
	if o.root != nil && o.tenant != "" {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationNamespaceUID, string(o.tenant))
	}
	o.claimOrigin.Stamp(after)
	after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// adoptable reports whether a volume that was let go of may become that of the
// claim that asks for it. One that a leaf claim of ours still holds is adopted
// with it, by root_pvc.
func (o observed) adoptable() bool {
	return o.asking != nil && o.claim == nil && o.leaf.Status.Phase == corev1.VolumeReleased &&
		o.class != nil && o.class.Provisioner == v1alpha1.ProvisionerName &&
		o.asking.Annotations[v1alpha1.AnnotationPlacedIn] == o.member.ClusterID && o.hostName(o.asking) == o.asking.Spec.VolumeName &&
		mirror.Adoptable(o.asking, o.class, o.tenant, o.leaf, false, o.member) == nil
}

// policyOf is the reclaim policy that the member gave the leaf PV.
func policyOf(leaf *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	return corev1.PersistentVolumeReclaimPolicy(leaf.Annotations[v1alpha1.AnnotationReclaimPolicy])
}

// hostName of the volume's mirror for a claim: the one that the claim names
// already, if it can be one and is free, so that a claim that lost its volume
// finds it again, whatever has become of the name that was taken then.
func (o observed) hostName(claim *corev1.PersistentVolumeClaim) string {
	plain := mirror.HostVolumeName(o.leaf.Name, o.member.ClusterID, false)
	suffixed := mirror.HostVolumeName(o.leaf.Name, o.member.ClusterID, true)
	switch named := claim.Spec.VolumeName; {
	case named == plain && !o.nameTaken, named == suffixed && !o.suffixTaken:
		return named
	case named == "" && !o.nameTaken:
		return plain
	case named == "":
		return suffixed
	}
	return ""
}

// create makes the host PV. One that is made anew, for a claim that names it
// already, is retained: what an admin had made of the earlier one's policy
// nobody knows any more.
func (o observed) create() decision {
	policy := mirror.Policy(o.class, policyOf(o.leaf))
	if o.root.Spec.VolumeName != "" {
		policy = corev1.PersistentVolumeReclaimRetain
	}
	host := mirror.HostVolume(o.leaf, o.root, policy, o.member)
	host.Name = o.hostName(o.root)
	return create{host}
}

// current keeps the host PV at what the leaf PV has become: capacity, volume
// attributes; the registration's present name; our finalizer; and Retain where
// the member retains.
func (o observed) current() decision {
	if o.host.DeletionTimestamp != nil || mirror.Abandoned(o.host) {
		return nothing{}
	}
	after := changed(o.host, func(after *corev1.PersistentVolume) {
		controllerutil.AddFinalizer(after, v1alpha1.FinalizerLeafVolume)
		metav1.SetMetaDataLabel(&after.ObjectMeta, v1alpha1.LabelCluster, o.member.Registration)
		delete(after.Annotations, v1alpha1.AnnotationClusterGone)
		if policyOf(o.leaf) != corev1.PersistentVolumeReclaimDelete {
			after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}
		change := mirror.VolumeDrift(o.host, o.leaf)
		if change.Capacity != nil {
			after.Spec.Capacity = change.Capacity
		}
		if change.VolumeAttributesClassName != nil {
			after.Spec.VolumeAttributesClassName = change.VolumeAttributesClassName
		}
	})
	if after == nil {
		return nothing{}
	}
	return patchHost{after}
}

// changed is a copy of a PV with a change made to it; nil if that changes nothing. As a
// rule it does not: of what is looked at, labels, annotations and finalizers are copied
// alone. Anything else that the PV points to is replaced by a change, never written to.
func changed(pv *corev1.PersistentVolume, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	after := *pv
	after.Labels, after.Annotations, after.Finalizers = maps.Clone(pv.Labels), maps.Clone(pv.Annotations), slices.Clone(pv.Finalizers)
	change(&after)
	// The former looks at nothing twice that both of them point to.
	if reflect.DeepEqual(pv, &after) || equality.Semantic.DeepEqual(pv, &after) {
		return nil
	}
	return after.DeepCopy()
}

// rootKey of the origin, for messages.
func (o observed) rootKey() types.NamespacedName { return o.origin.Root }
