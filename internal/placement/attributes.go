package placement

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// maxDriverNameLength is the maximum length in bytes of a driver's name, which the member controls.
const maxDriverNameLength = 253

// AttributesClass is a VolumeAttributesClass that a claim names, as it exists in both clusters.
type AttributesClass struct {
	// Name is the name of the host's class, and Driver the driver of the claim's volume in the
	// member.
	Name, Driver string
	// Host is the host's class. Class is the member's class for it. Either is nil if it does not
	// exist.
	Host, Class *storagev1.VolumeAttributesClass
	// Forbidden reports whether Xylem lacks permission to read the member's class.
	Forbidden bool
}

// RefuseAttributesClass returns why the claim's volume cannot have the attributes of the member's
// class, or nil if it can.
func (m Member) RefuseAttributesClass(a AttributesClass) *mirror.Refusal {
	mapped, rule := m.AttributesClassFor(a.Name, a.Host)
	switch {
	case a.Host != nil && a.Host.DriverName != v1alpha1.ProvisionerName:
		return mirror.NewRefusal(v1alpha1.ReasonAttributesClassMismatch, "VolumeAttributesClass %q in the host has driver %q, but the claim's volume has driver %q. Use a class with the volume's driver",
			a.Name, a.Host.DriverName, v1alpha1.ProvisionerName)
	case a.Forbidden:
		return mirror.NewRefusal(v1alpha1.ReasonAttributesClassNotFound, "member %q does not let Xylem read VolumeAttributesClass %q (by %s). Ask the member's admin to apply Xylem's roles for members again",
			m.Registration, mapped, rule)
	case a.Class == nil && a.Host == nil:
		return mirror.NewRefusal(v1alpha1.ReasonAttributesClassNotFound, "the host has no VolumeAttributesClass %q, and member %q has no class %q (by %s). Correct the claim's spec.volumeAttributesClassName. If the name is right, create the class in the member, or map it in ClusterRegistration %[2]q, spec.storage.attributesClasses",
			a.Name, m.Registration, mapped, rule)
	case a.Class == nil:
		return mirror.NewRefusal(v1alpha1.ReasonAttributesClassNotFound, "no VolumeAttributesClass %q in member %q (by %s). Create that class in the member, or map another one in ClusterRegistration %q, spec.storage.attributesClasses",
			mapped, m.Registration, rule, m.Registration)
	case a.Driver != a.Class.DriverName:
		return mirror.NewRefusal(v1alpha1.ReasonAttributesClassMismatch, "VolumeAttributesClass %q in member %q (by %s) has driver %q, but the claim's volume has driver %q. Use a class with the volume's driver, or map another one in ClusterRegistration %q, spec.storage.attributesClasses",
			mapped, m.Registration, rule, mirror.PlainText(a.Class.DriverName, maxDriverNameLength), mirror.PlainText(a.Driver, maxDriverNameLength), m.Registration)
	}
	return nil
}
