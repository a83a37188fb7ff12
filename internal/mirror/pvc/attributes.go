package pvc

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

// AttributesClass is what is to become of the VolumeAttributesClass of a leaf claim.
type AttributesClass int

// What is to become of it.
const (
	// AttributesKept: it is what the root names, or cannot be changed yet.
	AttributesKept AttributesClass = iota
	// AttributesChange: the leaf claim is to name the root's class, or none if the member
	// never applied one.
	AttributesChange
	// AttributesFixed: the root names none, and the member has applied one. Kubernetes lets
	// nobody take that off.
	AttributesFixed
)

// AttributesOf compares the VolumeAttributesClass of a leaf claim with its root's. Only a
// bound claim's can be changed. It is compared by the host's name: a mapping that an admin
// changes does not change disks that exist.
func AttributesOf(root, leaf *corev1.PersistentVolumeClaim) AttributesClass {
	want, has := ptr.Deref(root.Spec.VolumeAttributesClassName, ""), HostAttributesClass(leaf, ptr.Deref(leaf.Spec.VolumeAttributesClassName, ""))
	switch {
	case leaf.Status.Phase != corev1.ClaimBound || want == has:
		return AttributesKept
	case want == "" && ptr.Deref(leaf.Status.CurrentVolumeAttributesClassName, "") != "":
		return AttributesFixed
	}
	return AttributesChange
}

// WithAttributesClass is a copy of a leaf claim that names a VolumeAttributesClass of its
// member, and notes which one of the host that stands for; both empty for none. Earlier notes
// stay as long as the claim's status may name their classes.
func WithAttributesClass(leaf *corev1.PersistentVolumeClaim, member, host string) *corev1.PersistentVolumeClaim {
	leaf = leaf.DeepCopy()
	before, notes := attributesNotes(leaf), map[string]string{}
	for _, name := range []string{ptr.Deref(leaf.Status.CurrentVolumeAttributesClassName, ""), targetOf(&leaf.Status)} {
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
		raw, _ := json.Marshal(notes) // strings alone
		metav1.SetMetaDataAnnotation(&leaf.ObjectMeta, v1alpha1.AnnotationAttributesClasses, string(raw))
	}
	return leaf
}

// HostAttributesClass is the host's name of a VolumeAttributesClass that a leaf claim, its
// status or its volume names; empty for none. One that Xylem did not set, as somebody in the
// member did, is shown by its own name.
func HostAttributesClass(leaf *corev1.PersistentVolumeClaim, member string) string {
	if member == "" {
		return ""
	}
	if host := attributesNotes(leaf)[member]; host != "" {
		return sanitize.Plain(host, nameLimit)
	}
	return sanitize.Plain(member, nameLimit)
}

// nameLimit of the name of a class: it is a DNS subdomain.
const nameLimit = 253

// attributesNotes of a leaf claim: the host's class by the member's. What cannot be read was
// not written by Xylem, and says nothing.
func attributesNotes(leaf *corev1.PersistentVolumeClaim) map[string]string {
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

// hostAttributesClasses puts the host's names of a leaf claim's VolumeAttributesClasses into
// what its root is to show.
func hostAttributesClasses(leaf *corev1.PersistentVolumeClaim, status *corev1.PersistentVolumeClaimStatus) {
	if current := ptr.Deref(leaf.Status.CurrentVolumeAttributesClassName, ""); current != "" {
		status.CurrentVolumeAttributesClassName = ptr.To(HostAttributesClass(leaf, current))
	}
	if target := targetOf(&leaf.Status); target != "" {
		status.ModifyVolumeStatus.TargetVolumeAttributesClassName = HostAttributesClass(leaf, target)
	}
}

func targetOf(status *corev1.PersistentVolumeClaimStatus) string {
	return ptr.Deref(status.ModifyVolumeStatus, corev1.ModifyVolumeStatus{}).TargetVolumeAttributesClassName
}
