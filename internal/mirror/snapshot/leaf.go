package snapshot

import (
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
)

// TranslateSnapshot returns the leaf VolumeSnapshot of a root, with its origin. Its source is the leaf
// claim that has the name of the root's source.
func TranslateSnapshot(root *snapshotv1.VolumeSnapshot, class string, m mirror.Member) *snapshotv1.VolumeSnapshot {
	leaf := &snapshotv1.VolumeSnapshot{ObjectMeta: fields.TranslateMetadata(root.ObjectMeta)}
	leaf.Spec.Source.PersistentVolumeClaimName = fields.ClonePointer(root.Spec.Source.PersistentVolumeClaimName)
	leaf.Spec.VolumeSnapshotClassName = &class
	mirror.OriginForRoot(m.HostID, root).StampLeaf(leaf)
	return leaf
}

// IsContentOfSnapshot reports whether a leaf content was created for the VolumeSnapshot with this UID.
func IsContentOfSnapshot(leaf *snapshotv1.VolumeSnapshotContent, snapshot types.UID) bool {
	return snapshot != "" && leaf.Name == ContentName(snapshot) && leaf.Spec.VolumeSnapshotRef.UID == snapshot &&
		leaf.Spec.Source.VolumeHandle != nil
}

// SecuredContent returns a leaf content with its origin's stamp and policy Retain, or nil if it already
// has both. The first stamp records the member's policy.
func SecuredContent(leaf *snapshotv1.VolumeSnapshotContent, origin mirror.Origin) *snapshotv1.VolumeSnapshotContent {
	known := MemberDeletionPolicy(leaf) != ""
	if origin.IsStampedOn(leaf) && known && IsContentRetained(leaf) {
		return nil
	}
	after := leaf.DeepCopy()
	origin.StampLeaf(after)
	if !known {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationDeletionPolicy, string(leaf.Spec.DeletionPolicy))
	}
	after.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
	return after
}

// IsContentRetained reports whether a leaf content has policy Retain, so that nothing that happens only in
// the member destroys its snapshot. It returns true for nil.
func IsContentRetained(leaf *snapshotv1.VolumeSnapshotContent) bool {
	return leaf == nil || leaf.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain
}

// MemberDeletionPolicy returns the recorded deletion policy that a stamped leaf content had in the member.
func MemberDeletionPolicy(leaf *snapshotv1.VolumeSnapshotContent) snapshotv1.DeletionPolicy {
	return snapshotv1.DeletionPolicy(leaf.Annotations[v1alpha1.AnnotationDeletionPolicy])
}

// ContentWithPlacement returns a host content that records its member, and the handle of the disk that the claim has
// there. Xylem writes the content before it creates anything in that member.
func ContentWithPlacement(content *snapshotv1.VolumeSnapshotContent, m mirror.Member, disk string) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationSource, disk)
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationPlacedIn, m.ClusterID)
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, AnnBeingCreated, beingCreatedValue)
	return after
}

// RecordLeafSnapshot returns a host content that records its leaf VolumeSnapshot.
func RecordLeafSnapshot(content *snapshotv1.VolumeSnapshotContent, leaf *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationLeafSnapshotUID, string(leaf.UID))
	return after
}

// handleLimit is the maximum length, in bytes, of a member's handle or driver name on a host
// content.
const handleLimit = 1024

// RecordLeafContent returns a host content that records its leaf content. If the leaf VolumeSnapshot was
// deleted before it was recorded, the leaf content also shows its UID. A handle means that the
// driver has responded, so the content is no longer being created. Policy Retain in the member
// takes precedence, and the host content shows it.
func RecordLeafContent(content, leaf *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	if of := leaf.Spec.VolumeSnapshotRef.UID; ContentRecordOf(content).Snapshot == "" && IsContentOfSnapshot(leaf, of) {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationLeafSnapshotUID, string(of))
	}
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AttributeLeafUID, string(leaf.UID))
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AttributeDriver, ContentDriverOf(leaf))
	if handle := SnapshotHandleOf(leaf); handle != "" {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AttributeHandle, handle)
		delete(after.Annotations, AnnBeingCreated)
	}
	if MemberDeletionPolicy(leaf) == snapshotv1.VolumeSnapshotContentRetain {
		after.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
	}
	return after
}

// DiskHandleOf returns the driver's handle of a leaf PV's disk, or "" if a snapshot of it is impossible.
func DiskHandleOf(volume *corev1.PersistentVolume) string {
	if volume == nil || volume.Spec.CSI == nil {
		return ""
	}
	return mirror.PlainText(volume.Spec.CSI.VolumeHandle, handleLimit)
}

// sourceDiskHandle returns the driver's handle of the disk of which a leaf content is, or will be, a snapshot.
func sourceDiskHandle(leaf *snapshotv1.VolumeSnapshotContent) string {
	return mirror.PlainText(ptr.Deref(leaf.Spec.Source.VolumeHandle, ""), handleLimit)
}

// SnapshotHandleOf returns the handle that the member's driver gave a snapshot, or "" if it has none yet.
func SnapshotHandleOf(leaf *snapshotv1.VolumeSnapshotContent) string {
	if leaf == nil || leaf.Status == nil || leaf.Status.SnapshotHandle == nil {
		return ""
	}
	return mirror.PlainText(*leaf.Status.SnapshotHandle, handleLimit)
}

// ContentDriverOf returns the name of a leaf content's driver.
func ContentDriverOf(leaf *snapshotv1.VolumeSnapshotContent) string {
	return mirror.PlainText(leaf.Spec.Driver, handleLimit)
}

// HasSnapshotBegun reports whether a csi-snapshotter has begun to take the snapshot of a leaf content. It
// annotates the content before it calls the driver, and writes the status with the driver's response.
// With the first annotation, it replaces all annotations by those in its cache. If Xylem stamps the
// content before that, this write removes the stamp or is denied by the member's policy, and the
// csi-snapshotter then reports a failure until the snapshot is ready.
func HasSnapshotBegun(leaf *snapshotv1.VolumeSnapshotContent) bool {
	return leaf.Status != nil || metav1.HasAnnotation(leaf.ObjectMeta, AnnBeingCreated)
}

// RecordClusterGone returns a host content that records the deregistration of its member, with the last name of
// the registration.
func RecordClusterGone(content *snapshotv1.VolumeSnapshotContent, registration string) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationClusterGone, registration)
	delete(after.Annotations, AnnBeingCreated)
	return after
}

// RemoveClusterGone returns a host content without the record of its member's deregistration, because the
// member is registered again.
func RemoveClusterGone(content *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	delete(after.Annotations, v1alpha1.AnnotationClusterGone)
	return after
}

// ContentWithoutFinalizer returns a host content without its driver's finalizer.
func ContentWithoutFinalizer(content *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == FinalizerContent })
	return after
}
