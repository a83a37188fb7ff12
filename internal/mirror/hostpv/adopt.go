package hostpv

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/mirror"
)

// IsHostVolumeNameFor reports whether a host PV with this name can be a leaf PV's mirror.
func IsHostVolumeNameFor(hostName, leafName, clusterID string) bool {
	return hostName == HostVolumeName(leafName, clusterID, false) || hostName == HostVolumeName(leafName, clusterID, true)
}

// RequestsEarlierVolume reports whether a claim requests, with spec.volumeName, a leaf volume that was created
// for an earlier claim with its namespace and name.
func RequestsEarlierVolume(root *corev1.PersistentVolumeClaim, leaf *corev1.PersistentVolume, m mirror.Member) bool {
	origin, ours := mirror.LeafOriginFromHost(m.HostID, leaf)
	return ours && root.DeletionTimestamp == nil && leaf.DeletionTimestamp == nil && origin.UID != root.UID &&
		origin.Root == types.NamespacedName{Namespace: root.Namespace, Name: root.Name} &&
		root.Spec.VolumeName != "" && IsHostVolumeNameFor(root.Spec.VolumeName, leaf.Name, m.ClusterID)
}

// ClaimRefNamesClaim reports whether a PV's claimRef names this claim. A claimRef without a UID, which only
// reserves the PV for the claim, is sufficient.
func ClaimRefNamesClaim(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == claim.UID || ref.UID == "")
}

// ClaimRefHasUIDOf reports whether a PV's claimRef names this claim, including its UID.
func ClaimRefHasUIDOf(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return pv != nil && claim != nil && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID
}
