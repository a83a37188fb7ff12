package hostpv

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/mirror"
)

// IsNameFor reports whether a host PV with this name can be a leaf PV's mirror.
func IsNameFor(hostName, leafName, clusterID string) bool {
	return hostName == Name(leafName, clusterID, false) || hostName == Name(leafName, clusterID, true)
}

// Requests reports whether a claim requests, with spec.volumeName, a leaf volume that was created
// for an earlier claim with its namespace and name.
func Requests(root *corev1.PersistentVolumeClaim, leaf *corev1.PersistentVolume, m mirror.Member) bool {
	origin, ours := mirror.OriginIn(m.HostID, leaf)
	return ours && root.DeletionTimestamp == nil && leaf.DeletionTimestamp == nil && origin.UID != root.UID &&
		origin.Root == types.NamespacedName{Namespace: root.Namespace, Name: root.Name} &&
		root.Spec.VolumeName != "" && IsNameFor(root.Spec.VolumeName, leaf.Name, m.ClusterID)
}

// PointsAt reports whether a PV's claimRef names this claim. A claimRef without a UID, which only
// reserves the PV for the claim, is sufficient.
func PointsAt(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == claim.UID || ref.UID == "")
}

// HeldBy reports whether a PV's claimRef names this claim, including its UID.
func HeldBy(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return pv != nil && claim != nil && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID
}
