package hostpv

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/affinity"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// ImportOf returns the leaf PV that an admin's host PV requests, if Xylem has not recorded it yet.
// Such a PV names the same member in its handle and its node affinity, and has no keys that only
// Xylem writes. Xylem ignores any other PV of its driver that it did not create.
func ImportOf(host *corev1.PersistentVolume) (clusterID, leafName string, ok bool) {
	csi := host.Spec.CSI
	if csi == nil || csi.Driver != v1alpha1.ProvisionerName || host.Labels[v1alpha1.LabelClusterID] != "" ||
		host.Annotations[v1alpha1.AttributeLeafUID] != "" || slices.Contains(host.Finalizers, v1alpha1.FinalizerLeafVolume) {
		return "", "", false
	}
	clusterID, leafName, ok = strings.Cut(csi.VolumeHandle, "/")
	if !ok || clusterID == "" || len(validation.IsDNS1123Subdomain(leafName)) > 0 || !affinity.IsToMember(host.Spec.NodeAffinity, clusterID) {
		return "", "", false
	}
	return clusterID, leafName, true
}

// ImportOfIn is ImportOf for the leaf PVs of one member.
func ImportOfIn(host *corev1.PersistentVolume, clusterID string) (leafName string, ok bool) {
	in, leafName, ok := ImportOf(host)
	return leafName, ok && in == clusterID
}

// Imported reports whether an admin created a host PV, and Xylem has since recorded its leaf PV.
// The record is in annotations, because the source of a PV is immutable.
func Imported(host *corev1.PersistentVolume) bool {
	return host.Spec.CSI != nil && host.Spec.CSI.Driver == v1alpha1.ProvisionerName && host.Annotations[v1alpha1.AttributeLeafUID] != ""
}

// Recorded returns an admin's host PV that records the requested leaf PV: the leaf's UID, driver
// and handle, the member's labels, Xylem's finalizer, and policy Retain if the member retains the
// volume, or if the host releases the PV before any claim has used it.
func Recorded(host, leaf *corev1.PersistentVolume, m mirror.Member) *corev1.PersistentVolume {
	after := host.DeepCopy()
	after.Labels = fields.Merged(after.Labels, map[string]string{v1alpha1.LabelCluster: m.Registration, v1alpha1.LabelClusterID: m.ClusterID})
	after.Annotations = fields.Merged(after.Annotations, map[string]string{
		annotationProvisionedBy:   v1alpha1.ProvisionerName,
		v1alpha1.AttributeLeafUID: string(leaf.UID),
	})
	recordSource(after.Annotations, leaf)
	after.Finalizers = append(after.Finalizers, v1alpha1.FinalizerLeafVolume)
	if MemberPolicy(leaf) != corev1.PersistentVolumeReclaimDelete || endsUnused(host) {
		after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	return after
}

// endsUnused reports whether the host has released, or may release, an admin's host PV that no claim has
// used. An exported PV names the UID of its earlier claim. If that claim is gone, the PV becomes Released
// at once, but nobody decided to destroy the disk. A claim that the PV names without a UID is bound while
// the PV is Available.
func endsUnused(host *corev1.PersistentVolume) bool {
	ref := host.Spec.ClaimRef
	return ref != nil && ref.UID != "" && host.Status.Phase != corev1.VolumeAvailable && host.Status.Phase != corev1.VolumeBound
}

// MemberPolicy returns the reclaim policy that a leaf PV has in the member: the one that Xylem
// recorded with the stamp, or otherwise the current one.
func MemberPolicy(leaf *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	if noted := leaf.Annotations[v1alpha1.AnnotationReclaimPolicy]; noted != "" {
		return corev1.PersistentVolumeReclaimPolicy(noted)
	}
	return leaf.Spec.PersistentVolumeReclaimPolicy
}

// OriginOfHost returns the stamp of a leaf PV that an admin's host PV represents and that no claim
// has used yet. The stamp's root is the host PV.
func OriginOfHost(host *corev1.PersistentVolume, hostID string) mirror.Origin {
	return mirror.OriginFor(hostID, host)
}

// Reservation returns the claimRef of a leaf PV that a host PV represents and no claim uses. It has
// the host PV's UID, so it matches no claim.
func Reservation(host *corev1.PersistentVolume) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: v1alpha1.DefaultNamespace, Name: host.Name, UID: host.UID,
	}
}

// Consented reports whether the member's admin agreed that the host may adopt an unstamped leaf PV.
func Consented(leaf *corev1.PersistentVolume, hostID string) bool {
	return hostID != "" && leaf.Labels[v1alpha1.LabelHost] == hostID
}
