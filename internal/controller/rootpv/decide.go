package rootpv

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/proof"
)

// observed is all that a decision is taken on; nil is absent.
type observed struct {
	// host PV of this member; leafName and leafUID are those of its leaf PV.
	host     *corev1.PersistentVolume
	leafName string
	leafUID  types.UID
	// leaf PV of that UID, whether it carries our stamp, and whose root it names.
	leaf    *corev1.PersistentVolume
	stamped bool
	origin  mirror.Origin
	// replacement is a leaf PV of that name with another UID: it was re-created.
	replacement *corev1.PersistentVolume
	// claim is the leaf claim of the root that the host PV's claimRef names.
	claim *corev1.PersistentVolumeClaim
	// stale is the leaf claim of another root that the leaf PV is bound to: of an earlier
	// one, if an admin freed the host PV before that was gone.
	stale       *corev1.PersistentVolumeClaim
	staleOrigin mirror.Origin
	// unfulfilled: the host PV is a promise that this member has, without a disk.
	unfulfilled bool
	// consumers are the Pods that keep the disk of a promise that is released when it
	// is unused, grace after the last; node is the member's own. idle is how long ago
	// this process listed the Pods of a promise that is marked, if it listed them.
	consumers []corev1.Pod
	node      string
	grace     time.Duration
	idle      time.Duration
	listed    bool
	now       time.Time
}

type decision interface{ decision() }

type (
	nothing struct{}
	// flip puts the leaf PV to Delete: the first step of a destruction, for which
	// the root is proven gone.
	flip struct{}
	// deleteClaim deletes the leaf claim, once the root is proven gone.
	deleteClaim struct{}
	// deleteStale deletes the leaf claim of an earlier root, once that is proven gone, and
	// the leaf PV to be kept.
	deleteStale struct{}
	// unsupported reports a reclaim policy by which nothing is destroyed.
	unsupported struct{}
	// release drops our finalizer and, if also, deletes the host PV. If leafGone,
	// leaf claim and leaf PV are proven gone first.
	release struct{ leafGone, also bool }
	// releasePromise ends a promise that was never fulfilled, once root and leaf claim
	// are proven gone.
	releasePromise struct{}
)

func (nothing) decision()     {}
func (flip) decision()        {}
func (deleteClaim) decision() {}
func (deleteStale) decision() {}
func (unsupported) decision() {}
func (release) decision()     {}

func (releasePromise) decision() {}

func decide(o observed) decision {
	switch {
	case o.host == nil:
		return nothing{}
	case mirror.Abandoned(o.host):
		return nothing{} // host_volume lets go of it
	case o.inUse() && mirror.Releasing(o.host):
		return o.unused() // also if it was let go of meanwhile, and the leaf PV is gone for which leaf_pv would hold it again
	case !controllerutil.ContainsFinalizer(o.host, v1alpha1.FinalizerLeafVolume):
		return nothing{} // let go of
	case o.unfulfilled && mirror.Ended(o.host):
		return releasePromise{}
	case o.stale != nil && o.stale.DeletionTimestamp == nil && proof.Retained(o.leaf):
		return deleteStale{}
	case mirror.Ended(o.host):
		return o.released()
	case o.host.DeletionTimestamp != nil && (o.host.Spec.ClaimRef == nil || o.host.Status.Phase == corev1.VolumeAvailable):
		return release{} // never used since it was freed: nobody asked for its data to go
	case o.inUse():
		return o.unused()
	}
	return nothing{}
}

// inUse reports whether the host PV is a promise whose claim lives, and whose disk
// goes with its last Pod.
func (o observed) inUse() bool {
	return !o.unfulfilled && mirror.WhenUnused(o.host) && o.host.Status.Phase == corev1.VolumeBound && o.host.Spec.ClaimRef != nil
}

// released: the claim is gone, says the host's PV controller.
func (o observed) released() decision {
	destroys := o.destroys()
	switch {
	case destroys && o.leaf == nil && o.claim == nil:
		return release{leafGone: true, also: true}
	case destroys && o.leaf != nil && o.leaf.DeletionTimestamp == nil && o.leaf.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		return flip{}
	case o.claim != nil && o.claim.DeletionTimestamp != nil:
		return nothing{} // its end wakes us
	case o.claim != nil && o.mayDelete(destroys):
		return deleteClaim{}
	case !destroys && o.host.DeletionTimestamp != nil && (o.claim == nil || o.replacement == nil):
		return release{} // the host PV is what protects a replacement, until leaf_pv holds that
	case o.claim == nil && !supported(o.host.Spec.PersistentVolumeReclaimPolicy):
		return unsupported{}
	}
	return nothing{} // kept, about to go, or leaf_pv puts the leaf PV to Retain, and its watch wakes us
}

// mayDelete reports whether the leaf claim may go: its volume is to go, or outlives it.
func (o observed) mayDelete(destroys bool) bool {
	if o.replacement != nil {
		return proof.Outlives(o.replacement, o.claim)
	}
	return destroys || proof.Retained(o.leaf)
}

func supported(policy corev1.PersistentVolumeReclaimPolicy) bool {
	return policy == corev1.PersistentVolumeReclaimDelete || policy == corev1.PersistentVolumeReclaimRetain
}

// destroys reports whether the volume is to go: the host PV's policy says so at
// this moment, and the member's own policy did when the leaf PV was mirrored.
// A leaf PV that is there without our stamp is not the one that was mirrored. One with
// the stamp of another root is, if no claim there has it: the host PV was freed, and its
// next claim went before the leaf PV was pointed at that one's leaf claim.
func (o observed) destroys() bool {
	if o.host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return false
	}
	return o.leaf == nil || o.stamped && (!o.stampedForAnother() || mirror.Ended(o.host) && o.leaf.Status.Phase != corev1.VolumeBound) &&
		o.leaf.Annotations[v1alpha1.AnnotationReclaimPolicy] == string(corev1.PersistentVolumeReclaimDelete)
}

func (o observed) stampedForAnother() bool {
	return o.stamped && o.origin.UID != o.host.Spec.ClaimRef.UID
}
