package hostpv

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// VolumeDrift lists the fields of a host PV that must change to match its leaf PV. Other fields are
// immutable or belong to the host.
type VolumeDrift struct {
	// Capacity is the capacity to set, or nil.
	Capacity corev1.ResourceList
	// VolumeAttributesClassName is the name to set, or nil.
	VolumeAttributesClassName *string
}

// IsEmpty reports whether no change is needed.
func (c VolumeDrift) IsEmpty() bool {
	return c.Capacity == nil && c.VolumeAttributesClassName == nil
}

// VolumeDriftOf compares a host PV with its leaf PV. attributes is the host's name for the leaf's
// VolumeAttributesClass, or "" if it is unknown. The class changes only once the host PV is bound,
// because a PV and a claim are bound only if they name the same class.
func VolumeDriftOf(host, leaf *corev1.PersistentVolume, attributes string) VolumeDrift {
	var change VolumeDrift
	if storage := storageCapacityOf(leaf); storage != nil && !equality.Semantic.DeepEqual(host.Spec.Capacity, storage) {
		change.Capacity = storage
	}
	if attributes != "" && host.Status.Phase == corev1.VolumeBound && ptr.Deref(host.Spec.VolumeAttributesClassName, "") != attributes {
		change.VolumeAttributesClassName = &attributes
	}
	return change
}
