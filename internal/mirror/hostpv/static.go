package hostpv

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// RequestedImport returns the leaf PV that an admin's host PV requests, if Xylem has not recorded it yet.
// Such a PV names the same member in its handle and its node affinity, and has no keys that only
// Xylem writes. Xylem ignores any other PV of its driver that it did not create.
func RequestedImport(host *corev1.PersistentVolume) (clusterID, leafName string, ok bool) {
	csi := host.Spec.CSI
	if csi == nil || csi.Driver != v1alpha1.ProvisionerName || host.Labels[v1alpha1.LabelClusterID] != "" ||
		host.Annotations[v1alpha1.AttributeLeafUID] != "" || slices.Contains(host.Finalizers, v1alpha1.FinalizerLeafVolume) {
		return "", "", false
	}
	clusterID, leafName, ok = strings.Cut(csi.VolumeHandle, "/")
	if !ok || clusterID == "" || len(validation.IsDNS1123Subdomain(leafName)) > 0 || !mirror.IsNodeAffinityToMember(host.Spec.NodeAffinity, clusterID) {
		return "", "", false
	}
	return clusterID, leafName, true
}

// RequestedImportIn is RequestedImport for the leaf PVs of one member.
func RequestedImportIn(host *corev1.PersistentVolume, clusterID string) (leafName string, ok bool) {
	in, leafName, ok := RequestedImport(host)
	return leafName, ok && in == clusterID
}

// IsImportedVolume reports whether an admin created a host PV, and Xylem has since recorded its leaf PV.
// The record is in annotations, because the source of a PV is immutable.
func IsImportedVolume(host *corev1.PersistentVolume) bool {
	return host.Spec.CSI != nil && host.Spec.CSI.Driver == v1alpha1.ProvisionerName && host.Annotations[v1alpha1.AttributeLeafUID] != ""
}

// RecordImport returns an admin's host PV that records the requested leaf PV: the leaf's UID, driver
// and handle, the member's labels, Xylem's finalizer, and policy Retain if the member retains the
// volume, or if the host releases the PV before any claim has used it.
func RecordImport(host, leaf *corev1.PersistentVolume, m mirror.Member) *corev1.PersistentVolume {
	after := host.DeepCopy()
	after.Labels = fields.MergeStringMaps(after.Labels, map[string]string{v1alpha1.LabelCluster: m.Registration, v1alpha1.LabelClusterID: m.ClusterID})
	after.Annotations = fields.MergeStringMaps(after.Annotations, map[string]string{
		annotationProvisionedBy:   v1alpha1.ProvisionerName,
		v1alpha1.AttributeLeafUID: string(leaf.UID),
	})
	recordLeafSource(after.Annotations, leaf)
	after.Finalizers = append(after.Finalizers, v1alpha1.FinalizerLeafVolume)
	if MemberReclaimPolicy(leaf) != corev1.PersistentVolumeReclaimDelete || isReleasedUnused(host) {
		after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	return after
}

// isReleasedUnused reports whether the host has released, or may release, an admin's host PV that no claim has
// used. An exported PV names the UID of its earlier claim. If that claim is gone, the PV becomes Released
// at once, but nobody decided to destroy the disk. A claim that the PV names without a UID is bound while
// the PV is Available.
func isReleasedUnused(host *corev1.PersistentVolume) bool {
	ref := host.Spec.ClaimRef
	return ref != nil && ref.UID != "" && host.Status.Phase != corev1.VolumeAvailable && host.Status.Phase != corev1.VolumeBound
}

// MemberReclaimPolicy returns the reclaim policy that a leaf PV has in the member: the one that Xylem
// recorded with the stamp, or otherwise the current one.
func MemberReclaimPolicy(leaf *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	if noted := leaf.Annotations[v1alpha1.AnnotationReclaimPolicy]; noted != "" {
		return corev1.PersistentVolumeReclaimPolicy(noted)
	}
	return leaf.Spec.PersistentVolumeReclaimPolicy
}

// OriginForImport returns the stamp of a leaf PV that an admin's host PV represents and that no claim
// has used yet. The stamp's root is the host PV.
func OriginForImport(host *corev1.PersistentVolume, hostID string) mirror.Origin {
	return mirror.OriginForRoot(hostID, host)
}

// ReservingClaimRef returns the claimRef of a leaf PV that a host PV represents and no claim uses. It has
// the host PV's UID, so it matches no claim.
func ReservingClaimRef(host *corev1.PersistentVolume) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: v1alpha1.DefaultNamespace, Name: host.Name, UID: host.UID,
	}
}

// ConsentsToAdoption reports whether the member's admin agreed that the host may adopt an unstamped leaf PV.
func ConsentsToAdoption(leaf *corev1.PersistentVolume, hostID string) bool {
	return hostID != "" && leaf.Labels[v1alpha1.LabelHost] == hostID
}
