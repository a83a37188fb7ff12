package hostpv

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// Change is what of a host PV has to change because its leaf PV has.
// Everything else of a PV is immutable, or the host's own.
type Change struct {
	// Capacity to set; nil if it is right.
	Capacity corev1.ResourceList
	// VolumeAttributesClassName to set; nil if it is right.
	VolumeAttributesClassName *string
}

// Empty reports whether nothing has to change.
func (c Change) Empty() bool {
	return c.Capacity == nil && c.VolumeAttributesClassName == nil
}

// Drift compares a host PV with its leaf PV, whose volume attributes class has the name
// attributes in the host; empty if that is not known. The class
// follows only once the host PV is bound: before, it has to be the root claim's
// for the two to bind.
func Drift(host, leaf *corev1.PersistentVolume, attributes string) Change {
	var change Change
	if storage := storageOf(leaf); storage != nil && !equality.Semantic.DeepEqual(host.Spec.Capacity, storage) {
		change.Capacity = storage
	}
	if attributes != "" && host.Status.Phase == corev1.VolumeBound && ptr.Deref(host.Spec.VolumeAttributesClassName, "") != attributes {
		change.VolumeAttributesClassName = &attributes
	}
	return change
}
