package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// RefuseAdoption returns why a claim must not use the leaf volume that it requests and that no host PV
// represents, or nil. The request alone proves nothing, because every user who can create a claim
// can set volumeName. The claim can use the volume if it belonged to this tenant and was never
// released: the namespace has the same UID, and the leaf claim is still bound to the volume (kept).
// Otherwise, the volume must be Released, so that no other claim in the member can be bound to it, and
// an admin must allow the use with an annotation on the registration.
func (m Member) RefuseAdoption(root *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, namespace types.UID, leaf *corev1.PersistentVolume, kept bool) *mirror.Refusal {
	wrong := m.adoptionMismatches(root, class, leaf)
	if taken := whyNotReleased(root, leaf); taken != "" && !kept {
		wrong = append(wrong, taken)
	}
	if len(wrong) > 0 {
		return mirror.NewRefusal(v1alpha1.ReasonVolumeMismatch, "volume %q in member %q, which belonged to an earlier claim with this name, does not fit this claim: %s", leaf.Name, m.Registration, strings.Join(wrong, "; "))
	}
	was := types.UID(leaf.Annotations[v1alpha1.AnnotationNamespaceUID])
	switch {
	case m.Rules.AllowsAdoption(leaf.Name):
		return nil
	case !kept:
		return m.adoptionUnconfirmed(leaf, "that claim has released the volume")
	case was == "" || was != namespace:
		return m.adoptionUnconfirmed(leaf, "the namespace has since been re-created, and may belong to a different user")
	}
	return nil
}

func (m Member) adoptionUnconfirmed(leaf *corev1.PersistentVolume, why string) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonAdoptionUnconfirmed, "an earlier claim with this name was bound to volume %q in member %q, but %s. Ask an admin to allow this claim to use the volume with `kubectl annotate clusterregistration %s %s=%s`",
		leaf.Name, m.Registration, why, m.Registration, v1alpha1.AnnotationAdopt, leaf.Name)
}

// adoptionMismatches returns which of a claim's requirements an existing volume does not meet.
func (m Member) adoptionMismatches(root *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, leaf *corev1.PersistentVolume) []string {
	var wrong []string
	if name, rule := m.StorageClassFor(class); name != leaf.Spec.StorageClassName {
		wrong = append(wrong, fmt.Sprintf("the volume's class in the member is %q, but the claim's class maps to %q (by %s)", leaf.Spec.StorageClassName, name, rule))
	}
	want, has := root.Spec.Resources.Requests[corev1.ResourceStorage], leaf.Spec.Capacity[corev1.ResourceStorage]
	if want.Cmp(has) > 0 {
		wrong = append(wrong, fmt.Sprintf("the volume's capacity is %s, but the claim requests %s (request no more than the capacity, and expand the volume once it is bound)", has.String(), want.String()))
	}
	for _, mode := range root.Spec.AccessModes {
		if !slices.Contains(leaf.Spec.AccessModes, mode) {
			wrong = append(wrong, fmt.Sprintf("the volume lacks access mode %s", mode))
		}
	}
	if a, b := volumeModeOf(root.Spec.VolumeMode), volumeModeOf(leaf.Spec.VolumeMode); a != b {
		wrong = append(wrong, fmt.Sprintf("the volume has volumeMode %s, not %s", b, a))
	}
	return wrong
}

// whyNotReleased describes why a volume that its earlier leaf claim has released will not become Released,
// or returns "". The PV controller needs a moment to release the volume of a deleted claim.
func whyNotReleased(root *corev1.PersistentVolumeClaim, leaf *corev1.PersistentVolume) string {
	ref := leaf.Spec.ClaimRef
	switch phase := leaf.Status.Phase; {
	case phase == corev1.VolumeAvailable:
		freed := "it has no claimRef"
		if ref != nil {
			freed = "its claimRef has no uid"
		}
		return fmt.Sprintf("the volume is Available, not Released, because %s, so another claim may be bound to it (while its policy is Retain, the member's admin can set spec.claimRef to namespace %q and name %q, with any uid, and the volume becomes Released)", freed, root.Namespace, root.Name)
	case phase == corev1.VolumeBound && ref != nil && (ref.Namespace != root.Namespace || ref.Name != root.Name):
		return fmt.Sprintf("claim \"%s/%s\" in the member uses the volume", ref.Namespace, ref.Name)
	case phase == corev1.VolumeFailed:
		return "the volume is Failed, not Released (the volume's status and events in the member contain the cause)"
	}
	return ""
}

func volumeModeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	return ptr.Deref(mode, corev1.PersistentVolumeFilesystem)
}
