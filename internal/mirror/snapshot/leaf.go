package snapshot

import (
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/fields"
	"github.com/xylem-io/xylem/internal/mirror/sanitize"
)

// Translate is the leaf VolumeSnapshot of a root, origin included, of the leaf claim that has
// the name of the root's source.
func Translate(root *snapshotv1.VolumeSnapshot, class string, m mirror.Member) *snapshotv1.VolumeSnapshot {
	leaf := &snapshotv1.VolumeSnapshot{ObjectMeta: fields.LeafMeta(root.ObjectMeta)}
	leaf.Spec.Source.PersistentVolumeClaimName = fields.Clone(root.Spec.Source.PersistentVolumeClaimName)
	leaf.Spec.VolumeSnapshotClassName = &class
	mirror.OriginFor(m.HostID, root).Stamp(leaf)
	return leaf
}

// Binds reports whether a leaf content was created for a VolumeSnapshot of a UID.
func Binds(leaf *snapshotv1.VolumeSnapshotContent, snapshot types.UID) bool {
	return snapshot != "" && leaf.Name == ContentName(snapshot) && leaf.Spec.VolumeSnapshotRef.UID == snapshot &&
		leaf.Spec.Source.VolumeHandle != nil
}

// Secured is a leaf content with its origin's stamp and policy Retain; nil if it has them. The
// first stamp records the policy that the member had given it.
func Secured(leaf *snapshotv1.VolumeSnapshotContent, origin mirror.Origin) *snapshotv1.VolumeSnapshotContent {
	has, stamped := mirror.OriginIn(origin.HostID, leaf)
	_, known := leaf.Annotations[v1alpha1.AnnotationDeletionPolicy]
	if stamped && has == origin && known && Retained(leaf) {
		return nil
	}
	after := leaf.DeepCopy()
	origin.Stamp(after)
	if !known {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationDeletionPolicy, string(leaf.Spec.DeletionPolicy))
	}
	after.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
	return after
}

// Retained reports whether nothing that happens in the member alone destroys the snapshot of a
// leaf content. One that is not there has nothing to lose.
func Retained(leaf *snapshotv1.VolumeSnapshotContent) bool {
	return leaf == nil || leaf.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain
}

// Policy is the deletion policy that the member gave a stamped leaf content.
func Policy(leaf *snapshotv1.VolumeSnapshotContent) snapshotv1.DeletionPolicy {
	return snapshotv1.DeletionPolicy(leaf.Annotations[v1alpha1.AnnotationDeletionPolicy])
}

// Place is a content of the host that records its member, before anything is created there.
func Place(content *snapshotv1.VolumeSnapshotContent, m mirror.Member) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationPlacedIn, m.ClusterID)
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, AnnBeingCreated, yes)
	return after
}

// RecordSnapshot is a content of the host that records its leaf VolumeSnapshot.
func RecordSnapshot(content *snapshotv1.VolumeSnapshotContent, leaf *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationLeafSnapshotUID, string(leaf.UID))
	return after
}

// handleLimit in bytes of what the host's content says of the member's snapshot.
const handleLimit = 1024

// RecordContent is a content of the host that records its leaf content. The driver has answered
// once there is a handle: then the content is no longer being created. Retain in the member wins,
// and the host shows it.
func RecordContent(content, leaf *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AttributeLeafUID, string(leaf.UID))
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AttributeDriver, sanitize.Plain(leaf.Spec.Driver, handleLimit))
	if handle := HandleOf(leaf); handle != "" {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AttributeHandle, handle)
		delete(after.Annotations, AnnBeingCreated)
	}
	if Policy(leaf) == snapshotv1.VolumeSnapshotContentRetain {
		after.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
	}
	return after
}

// HandleOf is the handle that the member's driver gave a snapshot; empty if it has not yet.
func HandleOf(leaf *snapshotv1.VolumeSnapshotContent) string {
	if leaf == nil || leaf.Status == nil || leaf.Status.SnapshotHandle == nil {
		return ""
	}
	return sanitize.Plain(*leaf.Status.SnapshotHandle, handleLimit)
}

// Leave is a content of the host whose member is deregistered. What its name was, it keeps.
func Leave(content *snapshotv1.VolumeSnapshotContent, registration string) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationClusterGone, registration)
	delete(after.Annotations, AnnBeingCreated)
	return after
}

// Rejoin is a content of the host whose member is registered again.
func Rejoin(content *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	delete(after.Annotations, v1alpha1.AnnotationClusterGone)
	return after
}

// Release is a content of the host for which its driver has nothing left to do.
func Release(content *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshotContent {
	after := content.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == FinalizerContent })
	return after
}
