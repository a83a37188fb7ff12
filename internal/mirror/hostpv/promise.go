package hostpv

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

const (
	promiseNamePrefix   = "pvc-mock-"
	promiseHandlePrefix = "mock-vol-"
)

// PromiseName returns the name of a claim's promise.
func PromiseName(claim types.UID) string { return promiseNamePrefix + string(claim) }

// IsPromiseName reports whether a volume name is the name of a promise.
func IsPromiseName(volume string) bool { return strings.HasPrefix(volume, promiseNamePrefix) }

// IsPromiseClass reports whether a class is in promise mode.
func IsPromiseClass(class *storagev1.StorageClass) bool {
	c, err := ReadClassParameters(class)
	return err == nil && c.Provisioning == v1alpha1.ProvisioningPromise
}

// PromiseRefusal reports why a claim of a promise class cannot get a promise, or nil. Xylem
// cannot promise properties of a volume that does not exist yet.
func PromiseRefusal(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *mirror.Refusal {
	refuse := func(reason, format string, args ...any) *mirror.Refusal {
		return mirror.NewRefusal(reason, "Xylem cannot promise a volume to this claim: "+format, args...)
	}
	switch name := claim.Spec.VolumeName; {
	case name != "" && name != PromiseName(claim.UID) && !HasLostPromise(claim):
		return refuse(v1alpha1.ReasonVolumeNameUnsupported, "the claim requests volume %q. Delete the claim and create it again without spec.volumeName", name)
	case claim.Spec.Selector != nil:
		return refuse(v1alpha1.ReasonSelectorUnsupported, "the claim has a selector, which can only select existing volumes. Delete the claim and create it again without spec.selector")
	}
	switch source, has := mirror.DataSourceOf(claim); {
	case !has:
	case !source.IsInOneMember():
		return refuse(v1alpha1.ReasonDataSourceUnsupported, "the data source of the claim is %s, which may be in any member. Use a StorageClass without promises", source)
	case class != nil && class.Parameters[v1alpha1.ParameterRelease] == v1alpha1.ReleaseWhenUnused:
		return refuse(v1alpha1.ReasonDataSourceUnsupported, "the data source of the claim is %s, but StorageClass %q releases the disk with the last Pod, so the source would have to exist forever. Use a StorageClass without %s=%s",
			source, class.Name, v1alpha1.ParameterRelease, v1alpha1.ReleaseWhenUnused)
	}
	return nil
}

// HasLostPromise reports whether a claim was bound to a promise that no longer exists: its own, or an
// earlier claim's promise that it reused. The host's PV controller sets phase Lost.
func HasLostPromise(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimLost && IsPromiseName(claim.Spec.VolumeName)
}

// CurrentPromiseFor returns the promise that a claim without a promise needs: NewPromiseFor or, if its promise
// was lost, one with the name in the claim. If the claim uses an earlier claim's promise, that name
// contains the earlier claim's UID. The new PV then gets policy Retain, because an admin may have
// changed the policy of the lost one.
func CurrentPromiseFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	pv := NewPromiseFor(claim, class)
	if claim.Spec.VolumeName != "" {
		pv.Name = claim.Spec.VolumeName
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	return pv
}

// NewPromiseFor returns a mock PV, to which a claim of a promise class is bound immediately. The PV
// has a copy of the class's parameters, because an admin may replace the class before Xylem needs
// them. Its finalizer protects it until no member has, or will have, a disk for it. If the claim
// has a data source, its node affinity selects the member that has the source.
func NewPromiseFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: PromiseName(claim.UID),
			Annotations: map[string]string{
				v1alpha1.AnnotationMockPV: "true",
				annotationProvisionedBy:   v1alpha1.ProvisionerName,
			},
			Finalizers: []string{v1alpha1.FinalizerLeafVolume},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    requestedStorage(claim),
			AccessModes: slices.Clone(claim.Spec.AccessModes),
			VolumeMode:  volumeModeOf(claim),
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeReclaimPolicy: ClassReclaimPolicy(class),
			StorageClassName:              class.Name,
			VolumeAttributesClassName:     fields.ClonePointer(claim.Spec.VolumeAttributesClassName),
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver:           v1alpha1.PromiseDriverName,
				VolumeHandle:     promiseHandlePrefix + string(claim.UID),
				VolumeAttributes: xylemParameters(class),
			}},
		},
	}
	switch record, recorded := mirror.DataSourceRecordOf(claim); {
	case ReleasesWhenUnused(pv):
		pv.Spec.NodeAffinity = mirror.NodeAffinityToLabel(v1alpha1.LabelVirtualNode, "true")
	case recorded:
		pv.Spec.NodeAffinity = mirror.NodeAffinityToMember(record.ClusterID)
	}
	return pv
}

func volumeModeOf(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeMode {
	if mode := claim.Spec.VolumeMode; mode != nil {
		return fields.ClonePointer(mode)
	}
	filesystem := corev1.PersistentVolumeFilesystem
	return &filesystem
}

func requestedStorage(claim *corev1.PersistentVolumeClaim) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]}
}

func xylemParameters(class *storagev1.StorageClass) map[string]string {
	own := maps.Clone(class.Parameters)
	maps.DeleteFunc(own, func(key, _ string) bool { return !v1alpha1.Reserved(key) })
	return own
}

// IsPromise reports whether a host PV is a promise that Xylem created.
func IsPromise(pv *corev1.PersistentVolume) bool {
	return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == v1alpha1.PromiseDriverName &&
		pv.Annotations[v1alpha1.AnnotationMockPV] == "true" && pv.Annotations[annotationProvisionedBy] == v1alpha1.ProvisionerName
}

// IsUnfulfilledPromise reports whether a PV is a promise without a disk. For a promise with an incomplete
// record of its disk, both IsUnfulfilledPromise and LeafOfHostVolume return false, and Xylem creates and destroys
// nothing.
func IsUnfulfilledPromise(pv *corev1.PersistentVolume) bool {
	return IsPromise(pv) && pv.Annotations[v1alpha1.AnnotationVolume] == "" && pv.Annotations[v1alpha1.AttributeLeafUID] == ""
}

// IsUnfulfilledPromiseIn reports whether a PV is a promise without a disk that is assigned to a member.
func IsUnfulfilledPromiseIn(pv *corev1.PersistentVolume, clusterID string) bool {
	return IsUnfulfilledPromise(pv) && clusterID != "" && pv.Labels[v1alpha1.LabelClusterID] == clusterID
}

// IsUnassignedPromise reports whether a PV is a promise that is not assigned to a member.
func IsUnassignedPromise(pv *corev1.PersistentVolume) bool {
	return IsUnfulfilledPromise(pv) && pv.Labels[v1alpha1.LabelClusterID] == ""
}

// ClassOfPromise returns a promise's host class as it was when the promise was created.
func ClassOfPromise(pv *corev1.PersistentVolume) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: pv.Spec.StorageClassName},
		Provisioner: v1alpha1.ProvisionerName,
		Parameters:  pv.Spec.CSI.VolumeAttributes,
	}
}

// ReleasesWhenUnused reports whether a PV is a promise whose disk is released with its last Pod.
func ReleasesWhenUnused(pv *corev1.PersistentVolume) bool {
	return IsPromise(pv) && pv.Spec.CSI.VolumeAttributes[v1alpha1.ParameterRelease] == v1alpha1.ReleaseWhenUnused
}

// IsReleasingDisk reports whether the disk of a fulfilled promise is being destroyed because no Pod
// uses it.
func IsReleasingDisk(pv *corev1.PersistentVolume) bool {
	uid := pv.Annotations[v1alpha1.AnnotationReleasing]
	return uid != "" && ReleasesWhenUnused(pv) && uid == pv.Annotations[v1alpha1.AttributeLeafUID]
}

// IsMarkedUnused reports whether a promise records since when no Pod has used its disk.
func IsMarkedUnused(pv *corev1.PersistentVolume) bool {
	_, marked := pv.Annotations[v1alpha1.AnnotationUnusedSince]
	return marked
}

// PromiseWithMember returns a promise that records its member and the consuming Pod. It removes the record
// that an admin released the promise from that member.
func PromiseWithMember(pv *corev1.PersistentVolume, m mirror.Member, consumer *corev1.Pod) *corev1.PersistentVolume {
	after := pv.DeepCopy()
	after.Labels = fields.MergeStringMaps(after.Labels, map[string]string{v1alpha1.LabelCluster: m.Registration, v1alpha1.LabelClusterID: m.ClusterID})
	if IsPromiseReleasedFrom(pv, m.ClusterID) {
		delete(after.Annotations, v1alpha1.AnnotationAbandon)
	}
	if consumer != nil {
		after.Annotations = fields.MergeStringMaps(after.Annotations, map[string]string{v1alpha1.AnnotationConsumer: ConsumerRecordOf(consumer)})
	}
	return after
}

// ConsumerRecordOf returns a Pod's name and UID as promises record them.
func ConsumerRecordOf(pod *corev1.Pod) string {
	return fmt.Sprintf("%s/%s/%s", pod.Namespace, pod.Name, pod.UID)
}

// PromiseWithoutMember returns a promise that is not assigned to a member.
func PromiseWithoutMember(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	after := pv.DeepCopy()
	for _, key := range []string{v1alpha1.LabelCluster, v1alpha1.LabelClusterID} {
		delete(after.Labels, key)
	}
	for _, key := range []string{
		v1alpha1.AnnotationConsumer, v1alpha1.AnnotationVolume, v1alpha1.AttributeLeafUID, v1alpha1.AttributeDriver,
		v1alpha1.AttributeHandle, v1alpha1.AnnotationUnusedSince, v1alpha1.AnnotationReleasing, v1alpha1.AnnotationClusterGone,
	} {
		delete(after.Annotations, key)
	}
	return after
}

// FulfillPromise returns a promise that records its disk: the leaf PV, its driver, handle and capacity, and
// policy Retain if the member retains the disk. Its node affinity, which cannot be changed later, selects the
// member, unless the disk is released with its last Pod.
func FulfillPromise(pv, leaf *corev1.PersistentVolume, leafPolicy corev1.PersistentVolumeReclaimPolicy, m mirror.Member) *corev1.PersistentVolume {
	after := pv.DeepCopy()
	after.Annotations = fields.MergeStringMaps(after.Annotations, map[string]string{
		v1alpha1.AnnotationVolume: volumeHandle(m.ClusterID, leaf.Name),
		v1alpha1.AttributeLeafUID: string(leaf.UID),
	})
	recordLeafSource(after.Annotations, leaf)
	if storage := storageCapacityOf(leaf); storage != nil {
		after.Spec.Capacity = storage
	}
	if leafPolicy != corev1.PersistentVolumeReclaimDelete {
		after.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	switch {
	case ReleasesWhenUnused(pv), mirror.IsNodeAffinityToMember(pv.Spec.NodeAffinity, m.ClusterID):
	case pv.Spec.NodeAffinity == nil:
		after.Spec.NodeAffinity = nodeAffinityOf(leaf, m)
	default:
		after.Spec.NodeAffinity = mirror.NodeAffinityToMember(m.ClusterID)
	}
	return after
}

// UnfulfillPromise returns a promise whose disk was destroyed, so that any member can fulfill it again. The
// claim may no longer exist. Unfulfil restores the finalizer, which may have been removed with the
// last member, unless the promise is being deleted.
func UnfulfillPromise(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	after := PromiseWithoutMember(pv)
	if claim != nil {
		after.Spec.Capacity = requestedStorage(claim)
	}
	if after.DeletionTimestamp == nil && !slices.Contains(after.Finalizers, v1alpha1.FinalizerLeafVolume) {
		after.Finalizers = append(after.Finalizers, v1alpha1.FinalizerLeafVolume)
	}
	return after
}

// IsMovablePromise reports whether a PV is a bound promise that another member may fulfill if its data is
// not needed: it has no disk, or its class releases the disk with the last Pod.
func IsMovablePromise(pv *corev1.PersistentVolume) bool {
	if pv.Status.Phase != corev1.VolumeBound || pv.Spec.ClaimRef == nil || pv.DeletionTimestamp != nil {
		return false
	}
	_, _, _, fulfilled := LeafOfHostVolume(pv)
	return IsUnfulfilledPromise(pv) || fulfilled && ReleasesWhenUnused(pv)
}

// ReleasePromise returns a promise that an admin releases from a member. The member keeps its
// objects. The promise records the release, so that Xylem does not automatically assign it to that
// member again. The claim may no longer exist.
func ReleasePromise(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, clusterID string) *corev1.PersistentVolume {
	after := UnfulfillPromise(pv, claim)
	if clusterID == "" {
		delete(after.Annotations, v1alpha1.AnnotationAbandon)
	} else {
		after.Annotations = fields.MergeStringMaps(after.Annotations, map[string]string{v1alpha1.AnnotationAbandon: clusterID})
	}
	return after
}

// ClaimWithoutPlacement returns a released promise's claim without its placement in the member, or nil if it
// is not placed there.
func ClaimWithoutPlacement(claim *corev1.PersistentVolumeClaim, clusterID string) *corev1.PersistentVolumeClaim {
	if claim == nil || clusterID == "" || claim.Annotations[v1alpha1.AnnotationPlacedIn] != clusterID {
		return nil
	}
	after := claim.DeepCopy()
	delete(after.Annotations, v1alpha1.AnnotationPlacedIn)
	return after
}

// IsPromiseReleasedFrom reports whether a PV is a promise that an admin released from a member.
func IsPromiseReleasedFrom(pv *corev1.PersistentVolume, clusterID string) bool {
	return clusterID != "" && IsPromise(pv) && pv.Annotations[v1alpha1.AnnotationAbandon] == clusterID
}

// leafOfPromise is LeafOfHostVolume for promises: label, annotations and node affinity must agree.
func leafOfPromise(pv *corev1.PersistentVolume) (clusterID, leafName string, leafUID types.UID, ok bool) {
	pinned := func() bool {
		if ReleasesWhenUnused(pv) {
			return mirror.IsNodeAffinityToLabel(pv.Spec.NodeAffinity, v1alpha1.LabelVirtualNode, "true")
		}
		return mirror.IsNodeAffinityToMember(pv.Spec.NodeAffinity, clusterID)
	}
	clusterID, leafName, ok = strings.Cut(pv.Annotations[v1alpha1.AnnotationVolume], "/")
	leafUID = types.UID(pv.Annotations[v1alpha1.AttributeLeafUID])
	if !ok || !IsPromise(pv) || !mayIdentifyLeaf(pv, clusterID, leafName, leafUID) || !pinned() {
		return "", "", "", false
	}
	return clusterID, leafName, leafUID, true
}
