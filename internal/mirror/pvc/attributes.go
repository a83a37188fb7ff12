package pvc

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// AttributesClassChange is the change that a leaf claim's VolumeAttributesClass needs, if any.
type AttributesClassChange int

// The possible changes.
const (
	// AttributesKept means that the class already matches the root's, or cannot be changed yet.
	AttributesKept AttributesClassChange = iota
	// AttributesChange means that the leaf claim must name the root's class, or no class if the
	// root names none and the member never applied one.
	AttributesChange
	// AttributesFixed means that the root names no class, but the member has applied one.
	// Kubernetes does not allow users to remove it.
	AttributesFixed
)

// AttributesClassChangeOf compares the VolumeAttributesClass of a leaf claim with its root's. Only a bound
// claim's class can be changed. It compares the host's class names, so that a changed mapping does
// not affect existing disks.
func AttributesClassChangeOf(root, leaf *corev1.PersistentVolumeClaim) AttributesClassChange {
	want, has := ptr.Deref(root.Spec.VolumeAttributesClassName, ""), HostAttributesClass(leaf, ptr.Deref(leaf.Spec.VolumeAttributesClassName, ""))
	switch {
	case leaf.Status.Phase != corev1.ClaimBound || want == has:
		return AttributesKept
	case want == "" && ptr.Deref(leaf.Status.CurrentVolumeAttributesClassName, "") != "":
		return AttributesFixed
	}
	return AttributesChange
}

// ClaimWithAttributesClass returns a copy of a leaf claim that names a VolumeAttributesClass of its
// member and records the host's name for it. Both names are empty for no class. It keeps the
// earlier records of the classes that the claim's status names.
func ClaimWithAttributesClass(leaf *corev1.PersistentVolumeClaim, member, host string) *corev1.PersistentVolumeClaim {
	leaf = leaf.DeepCopy()
	before, notes := attributesClassRecords(leaf), map[string]string{}
	for _, name := range []string{ptr.Deref(leaf.Status.CurrentVolumeAttributesClassName, ""), targetAttributesClass(&leaf.Status)} {
		if was, noted := before[name]; noted {
			notes[name] = was
		}
	}
	leaf.Spec.VolumeAttributesClassName = nil
	if member != "" {
		leaf.Spec.VolumeAttributesClassName = &member
		notes[member] = host
	}
	delete(leaf.Annotations, v1alpha1.AnnotationAttributesClasses)
	if len(notes) > 0 {
		raw, _ := json.Marshal(notes) // a map of strings cannot fail
		metav1.SetMetaDataAnnotation(&leaf.ObjectMeta, v1alpha1.AnnotationAttributesClasses, string(raw))
	}
	return leaf
}

// HostAttributesClass returns the host's name for a VolumeAttributesClass that a leaf claim, its
// status or its volume names, or "" for none. A class that a user of the member set keeps its own
// name.
func HostAttributesClass(leaf *corev1.PersistentVolumeClaim, member string) string {
	if member == "" {
		return ""
	}
	if host := attributesClassRecords(leaf)[member]; host != "" {
		return mirror.PlainText(host, classNameLimit)
	}
	return mirror.PlainText(member, classNameLimit)
}

// classNameLimit is the maximum length of a class name, which is a DNS subdomain.
const classNameLimit = 253

// attributesClassRecords returns the records of a leaf claim, which map the member's class names to the
// host's. It ignores records that do not parse, because Xylem did not write them.
func attributesClassRecords(leaf *corev1.PersistentVolumeClaim) map[string]string {
	raw, noted := leaf.Annotations[v1alpha1.AnnotationAttributesClasses]
	if !noted {
		return nil
	}
	var notes map[string]string
	if json.Unmarshal([]byte(raw), &notes) != nil {
		return nil
	}
	return notes
}

// useHostAttributesClasses replaces the member's class names in a root's new status with the host's.
func useHostAttributesClasses(leaf *corev1.PersistentVolumeClaim, status *corev1.PersistentVolumeClaimStatus) {
	if current := ptr.Deref(leaf.Status.CurrentVolumeAttributesClassName, ""); current != "" {
		status.CurrentVolumeAttributesClassName = ptr.To(HostAttributesClass(leaf, current))
	}
	if target := targetAttributesClass(&leaf.Status); target != "" {
		status.ModifyVolumeStatus.TargetVolumeAttributesClassName = HostAttributesClass(leaf, target)
	}
}

func targetAttributesClass(status *corev1.PersistentVolumeClaimStatus) string {
	return ptr.Deref(status.ModifyVolumeStatus, corev1.ModifyVolumeStatus{}).TargetVolumeAttributesClassName
}
