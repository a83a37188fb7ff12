package hostpv

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

// ImportOf reports which leaf PV a host PV asks for that an admin created, and that Xylem has
// not recorded yet. Such a PV names the member in its handle and its node affinity, which agree,
// and has nothing that only Xylem writes. Any other PV of the driver is none of Xylem's.
func ImportOf(host *corev1.PersistentVolume) (clusterID, leafName string, ok bool) {
	csi := host.Spec.CSI
	if csi == nil || csi.Driver != v1alpha1.ProvisionerName || host.Labels[v1alpha1.LabelClusterID] != "" ||
		host.Annotations[v1alpha1.AttributeLeafUID] != "" || slices.Contains(host.Finalizers, v1alpha1.FinalizerLeafVolume) {
		return "", "", false
	}
	clusterID, leafName, ok = strings.Cut(csi.VolumeHandle, "/")
	if !ok || clusterID == "" || len(validation.IsDNS1123Subdomain(leafName)) > 0 || !isAffinityTo(host.Spec.NodeAffinity, clusterID) {
		return "", "", false
	}
	return clusterID, leafName, true
}

// ImportOfIn is ImportOf for the leaf PVs of one member.
func ImportOfIn(host *corev1.PersistentVolume, clusterID string) (leafName string, ok bool) {
	in, leafName, ok := ImportOf(host)
	return leafName, ok && in == clusterID
}

// Imported reports whether a host PV was created by an admin, and recorded by Xylem since then:
// the record is in annotations, since the source of a PV is immutable.
func Imported(host *corev1.PersistentVolume) bool {
	return host.Spec.CSI != nil && host.Spec.CSI.Driver == v1alpha1.ProvisionerName && host.Annotations[v1alpha1.AttributeLeafUID] != ""
}

// Recorded is a host PV of an admin with the record of the leaf PV that it asks for: its UID,
// driver and handle, the member's labels, our finalizer, and Retain if the member retains.
func Recorded(host, leaf *corev1.PersistentVolume, m mirror.Member) *corev1.PersistentVolume {
	after := host.DeepCopy()
	after.Labels = fields.Merged(after.Labels, map[string]string{v1alpha1.LabelCluster: m.Registration, v1alpha1.LabelClusterID: m.ClusterID})
	after.Annotations = fields.Merged(after.Annotations, map[string]string{
		annotationProvisionedBy:   v1alpha1.ProvisionerName,
		v1alpha1.AttributeLeafUID: string(leaf.UID),
	})
	driver, handle := SourceOf(leaf)
	for key, value := range map[string]string{v1alpha1.AttributeDriver: driver, v1alpha1.AttributeHandle: handle} {
		if value != "" {
			after.Annotations[key] = sanitize.Plain(value, attributeLimit)
		}
	}
	after.Finalizers = append(after.Finalizers, v1alpha1.FinalizerLeafVolume)
	if MemberPolicy(leaf) != corev1.PersistentVolumeReclaimDelete {
		after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	return after
}

// MemberPolicy is the reclaim policy that the member gave a leaf PV: the one that was noted when
// Xylem stamped it, else the present one.
func MemberPolicy(leaf *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	if noted := leaf.Annotations[v1alpha1.AnnotationReclaimPolicy]; noted != "" {
		return corev1.PersistentVolumeReclaimPolicy(noted)
	}
	return leaf.Spec.PersistentVolumeReclaimPolicy
}

// OriginOfHost is the stamp of a leaf PV that an admin's host PV represents, until a claim has
// it: the host PV is its root.
func OriginOfHost(host *corev1.PersistentVolume, hostID string) mirror.Origin {
	return mirror.OriginFor(hostID, host)
}

// Reservation is the claimRef of a leaf PV that a host PV represents and no claim has: it names no
// claim that there is, by the host PV's UID.
func Reservation(host *corev1.PersistentVolume) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: v1alpha1.DefaultNamespace, Name: host.Name, UID: host.UID,
	}
}

// Consented reports whether the member's admin lets a host have a leaf PV that has no stamp.
func Consented(leaf *corev1.PersistentVolume, hostID string) bool {
	return hostID != "" && leaf.Labels[v1alpha1.LabelHost] == hostID
}
