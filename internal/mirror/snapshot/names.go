package snapshot

import (
	"slices"
	"strconv"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Keys that the snapshot-controllers write (external-snapshotter/pkg/utils/util.go).
const (
	// AnnBeingCreated is on a content while its driver may be taking the snapshot.
	AnnBeingCreated = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"
	// AnnBeingDeleted is on a content whose VolumeSnapshot is being deleted, or was deleted.
	AnnBeingDeleted = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"
	// FinalizerContent protects a content until its driver has acted on the policy.
	FinalizerContent = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
	// AnnAllowModeChange on a content allows volumes with another volume mode to be created from
	// it.
	AnnAllowModeChange = "snapshot.storage.kubernetes.io/allow-volume-mode-change"
	// FinalizerSource protects a claim while its snapshot is being taken.
	FinalizerSource = "snapshot.storage.kubernetes.io/pvc-as-source-protection"
	// FinalizerRestored protects a VolumeSnapshot while claims are being restored from it.
	FinalizerRestored = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"

	beingCreatedValue = "yes"

	contentPrefix = "snapcontent-"
)

// ContentName returns the name of the content that a snapshot-controller creates for a
// VolumeSnapshot.
func ContentName(snapshot types.UID) string { return contentPrefix + string(snapshot) }

// SnapshotUIDFromName returns the VolumeSnapshot's UID from the name of a content that a snapshot-controller
// created, or "" for other names.
func SnapshotUIDFromName(content string) types.UID {
	uid, found := strings.CutPrefix(content, contentPrefix)
	if !found {
		return ""
	}
	return types.UID(uid)
}

// RootSnapshotKey returns the name of a content's VolumeSnapshot.
func RootSnapshotKey(content *snapshotv1.VolumeSnapshotContent) types.NamespacedName {
	ref := content.Spec.VolumeSnapshotRef
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}

// IsXylemContent reports whether Xylem is the driver of a host content.
func IsXylemContent(content *snapshotv1.VolumeSnapshotContent) bool {
	return content.Spec.Driver == v1alpha1.ProvisionerName
}

// ContentPlacedIn returns the cluster ID of the member that has, or may have, the snapshot of a host
// content. It is empty if no member has it.
func ContentPlacedIn(content *snapshotv1.VolumeSnapshotContent) string {
	return content.Annotations[v1alpha1.AnnotationPlacedIn]
}

// IsSnapshotBeingDeleted reports whether the snapshot-controller has marked a content's VolumeSnapshot as
// being deleted.
func IsSnapshotBeingDeleted(content *snapshotv1.VolumeSnapshotContent) bool {
	return metav1.HasAnnotation(content.ObjectMeta, AnnBeingDeleted)
}

// HasDriverFinalizer reports whether a content has its driver's finalizer.
func HasDriverFinalizer(content *snapshotv1.VolumeSnapshotContent) bool {
	return slices.Contains(content.Finalizers, FinalizerContent)
}

// IsAbandonedSnapshot reports whether an admin has abandoned the snapshot that a content represents.
func IsAbandonedSnapshot(content *snapshotv1.VolumeSnapshotContent) bool {
	return content.Annotations[v1alpha1.AnnotationAbandon] == "true"
}

// IsClusterGone reports whether a content's member was deregistered.
func IsClusterGone(content *snapshotv1.VolumeSnapshotContent) bool {
	return content.Annotations[v1alpha1.AnnotationClusterGone] != ""
}

// MayChangeVolumeMode reports whether an admin allows volumes with a volume mode other than the source's
// (external-provisioner, getSnapshotSource).
func MayChangeVolumeMode(content *snapshotv1.VolumeSnapshotContent) bool {
	allowed, err := strconv.ParseBool(content.Annotations[AnnAllowModeChange])
	return err == nil && allowed
}

// HasPendingSnapshot reports whether a VolumeSnapshot of a claim in the host is still to be taken: the host's
// snapshot-controller keeps the claim until then.
func HasPendingSnapshot(claim *corev1.PersistentVolumeClaim) bool {
	return claim != nil && slices.Contains(claim.Finalizers, FinalizerSource)
}

// ContentRecord is what a VolumeSnapshotContent in the host records about its leaf.
type ContentRecord struct {
	// Snapshot and Content are the UIDs of the leaf VolumeSnapshot and its content. They are
	// empty until Xylem records them.
	Snapshot, Content types.UID
	// Handle is the handle from the member's driver.
	Handle string
	// Disk is the driver's handle of the disk of which the snapshot is to be taken. A claim of a promise
	// class may have another disk later.
	Disk string
}

// ContentRecordOf returns what a VolumeSnapshotContent in the host records about its leaf.
func ContentRecordOf(content *snapshotv1.VolumeSnapshotContent) ContentRecord {
	return ContentRecord{
		Snapshot: types.UID(content.Annotations[v1alpha1.AnnotationLeafSnapshotUID]),
		Content:  types.UID(content.Annotations[v1alpha1.AttributeLeafUID]),
		Handle:   content.Annotations[v1alpha1.AttributeHandle],
		Disk:     content.Annotations[v1alpha1.AnnotationSource],
	}
}

// MatchesDisk reports whether a disk is the recorded one, or whether no disk is recorded.
func (r ContentRecord) MatchesDisk(disk string) bool { return r.Disk == "" || disk == r.Disk }

// MatchesDiskOf reports whether a leaf content is, or will be, a snapshot of the recorded disk.
func (r ContentRecord) MatchesDiskOf(leaf *snapshotv1.VolumeSnapshotContent) bool {
	return r.MatchesDisk(sourceDiskHandle(leaf))
}

// MatchesHandleOf reports whether a leaf content has the recorded handle, or whether no handle is recorded. A
// csi-snapshotter sets the handle once. It clears the handle of a content that is being deleted
// after it has deleted the snapshot.
func (r ContentRecord) MatchesHandleOf(leaf *snapshotv1.VolumeSnapshotContent) bool {
	handle := SnapshotHandleOf(leaf)
	return r.Handle == "" || handle == r.Handle || handle == "" && leaf.DeletionTimestamp != nil
}

// LeafContentName returns the name of the leaf content that a host content records, or "".
func LeafContentName(content *snapshotv1.VolumeSnapshotContent) string {
	if uid := ContentRecordOf(content).Snapshot; uid != "" {
		return ContentName(uid)
	}
	return ""
}
