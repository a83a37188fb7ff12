package hostpv

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/weigh"
)

// annotationProvisionedBy is the annotation with the name of the volume's provisioner. The host's
// PV controller has no plugin with this name, so it leaves a released volume to the provisioner.
const annotationProvisionedBy = "pv.kubernetes.io/provisioned-by"

// TranslateVolume returns the host PV that mirrors a leaf PV for a root claim, according to the contract of
// DESIGN.md §1. It is named as Name describes. It lacks the leaf PV's labels, because the scheduler
// would compare their zones and regions with those of the virtual node.
func TranslateVolume(leaf *corev1.PersistentVolume, root *corev1.PersistentVolumeClaim,
	policy corev1.PersistentVolumeReclaimPolicy, m mirror.Member,
) *corev1.PersistentVolume {
	spec := *leaf.Spec.DeepCopy()
	fields.ApplyDecisions(volumeDecisions, &spec, VolumeFieldTable.PathPrefix)
	mirror.MemberValue(&spec)
	spec.Capacity = storageCapacityOf(leaf)
	spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: hostVolumeSource(leaf, spec.CSI, m)}
	spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: "v1",
		Kind:       "PersistentVolumeClaim",
		Namespace:  root.Namespace,
		Name:       root.Name,
		UID:        root.UID,
	}
	spec.PersistentVolumeReclaimPolicy = policy
	spec.StorageClassName = ClassNameOf(root)
	spec.VolumeAttributesClassName = fields.ClonePointer(root.Spec.VolumeAttributesClassName)
	spec.NodeAffinity = nodeAffinityOf(leaf, m)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: leaf.Name,
			Labels: map[string]string{
				v1alpha1.LabelCluster:   m.Registration,
				v1alpha1.LabelClusterID: m.ClusterID,
			},
			Annotations: map[string]string{annotationProvisionedBy: v1alpha1.ProvisionerName},
			Finalizers:  []string{v1alpha1.FinalizerLeafVolume},
		},
		Spec: spec,
	}
}

// nodeAffinityOf returns the node affinity of a leaf PV's host PV. The host's scheduler does not know the labels of the
// member's nodes.
func nodeAffinityOf(leaf *corev1.PersistentVolume, m mirror.Member) *corev1.VolumeNodeAffinity {
	topologies := TopologiesOf(leaf.Spec.NodeAffinity)
	if len(m.NodeGroups) == 0 || len(topologies) == 0 {
		return mirror.NodeAffinityToMember(m.ClusterID)
	}
	var labels []string
	for _, topology := range topologies {
		labels = append(labels, topology.Label)
	}
	return mirror.NodeAffinityToTopologies(m.ClusterID, labels)
}

func hostVolumeSource(leaf *corev1.PersistentVolume, csi *corev1.CSIPersistentVolumeSource, m mirror.Member) *corev1.CSIPersistentVolumeSource {
	host := &corev1.CSIPersistentVolumeSource{
		Driver:           v1alpha1.ProvisionerName,
		VolumeHandle:     volumeHandle(m.ClusterID, leaf.Name),
		VolumeAttributes: map[string]string{v1alpha1.AttributeLeafUID: string(leaf.UID)},
	}
	recordLeafSource(host.VolumeAttributes, leaf)
	if csi != nil {
		host.ReadOnly, host.FSType = csi.ReadOnly, csi.FSType
	}
	return host
}

// recordLeafSource records the leaf PV's driver and handle in the attributes of a host PV or, if its source
// is already immutable, in its annotations.
func recordLeafSource(in map[string]string, leaf *corev1.PersistentVolume) {
	driver, handle := mirror.VolumeSourceOf(leaf)
	for key, value := range map[string]string{v1alpha1.AttributeDriver: driver, v1alpha1.AttributeHandle: handle} {
		if plain := mirror.PlainText(value, attributeLimit); plain != "" {
			in[key] = plain
		}
	}
}

// RecordProvisioned records, in the host PV that TranslateVolume returned, that the leaf PV was provisioned for
// the root's leaf claim. It records nothing if the member bound the leaf claim to a leaf PV that
// existed before: the PV controller and the scheduler annotate such a PV, and one that Xylem or an
// admin reserved is older than the leaf claim, or has no provisioner.
func RecordProvisioned(host, leaf *corev1.PersistentVolume, leafClaim *corev1.PersistentVolumeClaim) {
	if ClaimRefHasUIDOf(leaf, leafClaim) && leaf.Annotations[annotationProvisionedBy] != "" &&
		!metav1.HasAnnotation(leaf.ObjectMeta, volumehelpers.AnnBoundByController) &&
		!leaf.CreationTimestamp.Before(&leafClaim.CreationTimestamp) {
		host.Spec.CSI.VolumeAttributes[v1alpha1.AttributeProvisionedFor] = string(host.Spec.ClaimRef.UID)
	}
}

// WasProvisionedFor reports whether Xylem created a host PV for a claim, and the member provisioned its
// leaf PV for that claim. The record is immutable, because the source of a PV is.
func WasProvisionedFor(host *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	_, _, _, ours := LeafOfHostVolume(host)
	return ours && !IsImportedVolume(host) && ClaimRefHasUIDOf(host, claim) && host.Spec.CSI.VolumeAttributes[v1alpha1.AttributeProvisionedFor] == string(claim.UID)
}

// RecordedSourceOf returns the driver and the volume handle of the leaf PV that a host PV records. A host PV
// whose source was created before the leaf PV has them in annotations.
func RecordedSourceOf(host *corev1.PersistentVolume) (driver, handle string) {
	record := host.Annotations
	if csi := host.Spec.CSI; csi != nil && csi.Driver == v1alpha1.ProvisionerName && !IsImportedVolume(host) {
		record = csi.VolumeAttributes
	}
	return record[v1alpha1.AttributeDriver], record[v1alpha1.AttributeHandle]
}

// DescribeVolume names the volume that a host PV represents, for records that outlive the PV: the PV, and the
// leaf PV, handle and driver that it records.
func DescribeVolume(host *corev1.PersistentVolume) string {
	kind := "volume"
	if IsPromise(host) {
		kind = "promise"
	}
	_, leaf, _, recorded := LeafOfHostVolume(host)
	if !recorded {
		return fmt.Sprintf("%s %q (no disk is recorded)", kind, host.Name)
	}
	driver, handle := RecordedSourceOf(host)
	return fmt.Sprintf("%s %q (%q in the member, handle %q of driver %q)", kind, host.Name, leaf, handle, driver)
}

// HasRecordedDisk reports whether a leaf PV has the disk that a host PV records.
func HasRecordedDisk(host, leaf *corev1.PersistentVolume) bool {
	record := map[string]string{}
	recordLeafSource(record, leaf)
	driver, handle := RecordedSourceOf(host)
	return handle != "" && driver == record[v1alpha1.AttributeDriver] && handle == record[v1alpha1.AttributeHandle]
}

// attributeLimit is the maximum length, in bytes, of each value that the host PV copies from the
// member.
const attributeLimit = 1024

// storageCapacityOf returns a leaf PV's storage capacity, or nil if it is missing or out of range. PVs have no
// other resources.
func storageCapacityOf(leaf *corev1.PersistentVolume) corev1.ResourceList {
	amount, there := leaf.Spec.Capacity[corev1.ResourceStorage]
	if !there || !weigh.IsInRange(amount) {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceStorage: amount.DeepCopy()}
}

// nameSuffixBytes is the length of the digest that distinguishes volumes whose leaves have the same
// name in two members. 2^64 different suffixes are enough.
const nameSuffixBytes = 8

// HostVolumeName returns the name of the host PV that mirrors a leaf PV. It is the leaf PV's name, with a
// suffix derived from the cluster ID and the name if another PV has that name. Suffixed names of
// different leaves differ, even if a long name is truncated.
func HostVolumeName(leafName, clusterID string, collides bool) string {
	if !collides {
		return leafName
	}
	sum := sha256.Sum256([]byte(volumeHandle(clusterID, leafName)))
	suffix := "-" + hex.EncodeToString(sum[:nameSuffixBytes])
	if limit := validation.DNS1123SubdomainMaxLength - len(suffix); len(leafName) > limit {
		leafName = strings.TrimRight(leafName[:limit], "-.")
	}
	return leafName + suffix
}

func volumeHandle(clusterID, leafName string) string { return clusterID + "/" + leafName }

// LeafOfHostVolume reports which leaf PV a host PV represents: as its mirror, as an admin's recorded PV, or
// as a promise that the leaf PV fulfills. It returns false for a PV that is not Xylem's, and for a
// PV that a user changed so that its record, label and node affinity name different members.
func LeafOfHostVolume(host *corev1.PersistentVolume) (clusterID, leafName string, leafUID types.UID, ok bool) {
	csi := host.Spec.CSI
	switch {
	case csi == nil:
		return "", "", "", false
	case csi.Driver == v1alpha1.PromiseDriverName:
		return leafOfPromise(host)
	case csi.Driver != v1alpha1.ProvisionerName:
		return "", "", "", false
	}
	clusterID, leafName, ok = strings.Cut(csi.VolumeHandle, "/")
	leafUID = types.UID(csi.VolumeAttributes[v1alpha1.AttributeLeafUID])
	if recorded := types.UID(host.Annotations[v1alpha1.AttributeLeafUID]); recorded != "" {
		ok = ok && (leafUID == "" || leafUID == recorded)
		leafUID = recorded
	}
	if !ok || !mayIdentifyLeaf(host, clusterID, leafName, leafUID) || !mirror.IsNodeAffinityToMember(host.Spec.NodeAffinity, clusterID) && BackendOfVolume(host) == "" {
		return "", "", "", false
	}
	return clusterID, leafName, leafUID, true
}

// RecordsLeaf reports whether a host PV names a leaf PV, by its handle or by the record of a
// promise, regardless of the UID. LeafOfHostVolume decides what Xylem may act on, and rejects a PV with an
// edited label or node affinity. RecordsLeaf accepts such a PV, because its leaf is mirrored
// anyway.
func RecordsLeaf(host *corev1.PersistentVolume, clusterID, leafName string) bool {
	return slices.Contains(LeavesRecordedBy(host, clusterID), leafName)
}

// LeavesRecordedBy returns the names of the leaf PVs in a member for which RecordsLeaf is true.
func LeavesRecordedBy(host *corev1.PersistentVolume, clusterID string) []string {
	handles := []string{host.Annotations[v1alpha1.AnnotationVolume]}
	if csi := host.Spec.CSI; csi != nil && csi.Driver == v1alpha1.ProvisionerName {
		handles = append(handles, csi.VolumeHandle)
	}
	var names []string
	for _, handle := range handles {
		if name, ok := strings.CutPrefix(handle, volumeHandle(clusterID, "")); ok {
			names = append(names, name)
		}
	}
	return names
}

// mayIdentifyLeaf reports whether a host PV's record can identify a leaf PV in the member that its label
// names.
func mayIdentifyLeaf(host *corev1.PersistentVolume, clusterID, name string, uid types.UID) bool {
	if clusterID == "" || uid == "" || host.Labels[v1alpha1.LabelClusterID] != clusterID {
		return false
	}
	// The name is usually the host PV's own, which the API server has validated.
	return name == host.Name && name != "" || len(validation.IsDNS1123Subdomain(name)) == 0
}

// IsReleasedOrFailed reports whether the host's PV controller observed the deletion of a PV's claim: the PV is
// Released, or reclaiming it has failed since.
func IsReleasedOrFailed(pv *corev1.PersistentVolume) bool {
	return pv.Spec.ClaimRef != nil && (pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed)
}

// IsAvailableVolume reports whether no claim is, or was, bound to a PV since it was created or freed.
func IsAvailableVolume(pv *corev1.PersistentVolume) bool {
	return pv.Spec.ClaimRef == nil || pv.Status.Phase == corev1.VolumeAvailable
}

// ClaimRefKey returns the namespace and name in a PV's claimRef, which must not be nil.
func ClaimRefKey(pv *corev1.PersistentVolume) types.NamespacedName {
	return types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}
}

// IsAbandonedVolume reports whether an admin has abandoned the volume that a host PV represents.
func IsAbandonedVolume(pv *corev1.PersistentVolume) bool {
	return pv.Annotations[v1alpha1.AnnotationAbandon] == "true"
}

// HostReclaimPolicy returns the reclaim policy of a host PV: Delete only if the host's class and the leaf PV's
// own policy are both Delete. Otherwise, including for a missing class (nil) or policy Recycle, the
// volume is retained. leafPolicy is the member's original policy, not the Retain that Xylem sets on
// leaf PVs in use.
func HostReclaimPolicy(hostClass *storagev1.StorageClass, leafPolicy corev1.PersistentVolumeReclaimPolicy) corev1.PersistentVolumeReclaimPolicy {
	if hostClass == nil || leafPolicy != corev1.PersistentVolumeReclaimDelete {
		return corev1.PersistentVolumeReclaimRetain
	}
	// The API defaults a class's policy to Delete.
	if p := hostClass.ReclaimPolicy; p != nil && *p != corev1.PersistentVolumeReclaimDelete {
		return corev1.PersistentVolumeReclaimRetain
	}
	return corev1.PersistentVolumeReclaimDelete
}
