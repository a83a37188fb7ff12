package mirror

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// AdoptsAll in a registration's adopt annotation allows every volume.
const AdoptsAll = "*"

// StandsFor reports whether a host PV of that name can be a leaf PV's mirror.
func StandsFor(hostName, leafName, clusterID string) bool {
	return hostName == HostVolumeName(leafName, clusterID, false) || hostName == HostVolumeName(leafName, clusterID, true)
}

// AsksFor reports whether a claim asks, by spec.volumeName, for a leaf volume
// that was made for an earlier claim of its own namespace and name.
func AsksFor(root *corev1.PersistentVolumeClaim, leaf *corev1.PersistentVolume, m Member) bool {
	origin, ours := OriginIn(m.HostID, leaf)
	return ours && root.DeletionTimestamp == nil && leaf.DeletionTimestamp == nil && origin.UID != root.UID &&
		origin.Root == types.NamespacedName{Namespace: root.Namespace, Name: root.Name} &&
		root.Spec.VolumeName != "" && StandsFor(root.Spec.VolumeName, leaf.Name, m.ClusterID)
}

// Adoptable says why a claim may not have the leaf volume that it asks for and
// that no volume of the host stands for: nil if it may. Anybody who may make a
// claim can write volumeName, so that this alone asks, and allows nothing. What
// allows it is that the volume was this very tenant's, and that nobody has let go
// of it: its namespace is the same object as then, and its leaf claim still holds
// it (kept). Else an admin has to, on the registration.
func Adoptable(root *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, namespace types.UID, leaf *corev1.PersistentVolume, kept bool, m Member) *Refusal {
	if wrong := mismatch(root, class, leaf, m); len(wrong) > 0 {
		return &Refusal{Reason: v1alpha1.ReasonVolumeMismatch, Message: fmt.Sprintf(
			"volume %s in member %s was made for an earlier claim of this name, and does not fit this one: %s", leaf.Name, m.Registration, strings.Join(wrong, "; "))}
	}
	was := types.UID(leaf.Annotations[v1alpha1.AnnotationNamespaceUID])
	switch {
	case m.Allows(leaf.Name):
		return nil
	case !kept:
		return unconfirmed(leaf, m, "it was let go of since")
	case was == "" || was != namespace:
		return unconfirmed(leaf, m, "the namespace was made anew since, and may be another's")
	}
	return nil
}

// Allows reports whether an admin allows claims to have a leaf volume of the member.
func (m Member) Allows(volume string) bool {
	return slices.Contains(m.Adopt, AdoptsAll) || slices.Contains(m.Adopt, volume)
}

// PointsAt reports whether a PV was made for a claim, or waits to be bound to it.
func PointsAt(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == claim.UID || ref.UID == "")
}

// HeldBy reports whether a PV's claimRef names this very claim.
func HeldBy(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return pv != nil && claim != nil && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID
}

func unconfirmed(leaf *corev1.PersistentVolume, m Member, why string) *Refusal {
	return &Refusal{Reason: v1alpha1.ReasonAdoptionUnconfirmed, Message: fmt.Sprintf(
		"volume %s in member %s was made for an earlier claim of this name, but %s: an admin can let this claim have it by `kubectl annotate clusterregistration %s %s=%s`",
		leaf.Name, m.Registration, why, m.Registration, v1alpha1.AnnotationAdopt, leaf.Name)}
}

// mismatch says what of a claim a volume that is there does not meet.
func mismatch(root *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, leaf *corev1.PersistentVolume, m Member) []string {
	var wrong []string
	if name, rule := MemberClass(class, m); name != leaf.Spec.StorageClassName {
		wrong = append(wrong, fmt.Sprintf("it is of class %q there, the claim's would be %q (by %s)", leaf.Spec.StorageClassName, name, rule))
	}
	want, has := root.Spec.Resources.Requests[corev1.ResourceStorage], leaf.Spec.Capacity[corev1.ResourceStorage]
	if want.Cmp(has) > 0 {
		wrong = append(wrong, fmt.Sprintf("it has %s, the claim asks for %s: ask for no more, and grow it then", has.String(), want.String()))
	}
	for _, mode := range root.Spec.AccessModes {
		if !slices.Contains(leaf.Spec.AccessModes, mode) {
			wrong = append(wrong, fmt.Sprintf("it lacks access mode %s", mode))
		}
	}
	if a, b := modeOf(root.Spec.VolumeMode), modeOf(leaf.Spec.VolumeMode); a != b {
		wrong = append(wrong, fmt.Sprintf("its volume mode is %s, not %s", b, a))
	}
	return wrong
}

func modeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}
