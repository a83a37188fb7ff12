package hostvolume

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

type decision int

const (
	nothing decision = iota
	// remove the host PV: no claim has it any more.
	remove
	// release drops our finalizer.
	release
	// vanish deletes a promise that no member ever had, and drops our finalizer, once
	// its claim is proven gone.
	vanish
	// letGo takes a promise from the member that has it, so that another may fulfil it;
	// unplace then takes that member off its claim.
	letGo
	unplace
	// forget drops our finalizer from such a promise that has no claim.
	forget
)

// concerned reports whether there may be anything to decide on a PV: of tens of
// thousands, on few.
func concerned(obj client.Object) bool {
	pv, ok := obj.(*corev1.PersistentVolume)
	return ok && (mirror.IsUnused(pv) || mirror.Abandoned(pv))
}

// decide on a host PV; nil is absent.
func decide(pv *corev1.PersistentVolume) decision {
	if pv == nil || !concerned(pv) {
		return nothing
	}
	if mirror.IsUnused(pv) {
		return unused(pv)
	}
	if _, _, _, ours := mirror.LeafVolumeOf(pv); !ours && !mirror.IsPromiseIn(pv, pv.Labels[v1alpha1.LabelClusterID]) {
		return nothing
	}
	switch {
	case mirror.Movable(pv):
		return letGo
	case (mirror.Ended(pv) || pv.Spec.ClaimRef == nil) && pv.DeletionTimestamp == nil:
		return remove
	case controllerutil.ContainsFinalizer(pv, v1alpha1.FinalizerLeafVolume):
		return release
	}
	return nothing
}

// unused decides on a promise that no member has: nothing is anywhere for it that is
// not let go of, and it goes with its claim, whatever its policy.
func unused(pv *corev1.PersistentVolume) decision {
	switch {
	case mirror.Ended(pv) && (pv.DeletionTimestamp == nil || controllerutil.ContainsFinalizer(pv, v1alpha1.FinalizerLeafVolume)):
		return vanish
	case pv.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(pv, v1alpha1.FinalizerLeafVolume) &&
		(pv.Spec.ClaimRef == nil || pv.Status.Phase == corev1.VolumeAvailable):
		return forget
	case mirror.Movable(pv) && mirror.LetGoIn(pv, pv.Annotations[v1alpha1.AnnotationAbandon]):
		return unplace
	}
	return nothing
}
