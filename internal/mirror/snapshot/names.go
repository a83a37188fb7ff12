package snapshot

import (
	"slices"
	"strconv"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// What the snapshot-controllers write (external-snapshotter/pkg/utils/util.go).
const (
	// AnnBeingCreated is on a content while its driver may be taking the snapshot.
	AnnBeingCreated = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"
	// AnnBeingDeleted is on a content whose VolumeSnapshot is being deleted, or was.
	AnnBeingDeleted = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"
	// FinalizerContent keeps a content until its driver has done what the policy says.
	FinalizerContent = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
	// AnnAllowModeChange on a content lets volumes of another volume mode be created from it.
	AnnAllowModeChange = "snapshot.storage.kubernetes.io/allow-volume-mode-change"
	// FinalizerSource keeps a claim while a snapshot of it is being taken.
	FinalizerSource = "snapshot.storage.kubernetes.io/pvc-as-source-protection"

	yes = "yes"

	contentPrefix = "snapcontent-"
)

// ContentName is the name of the content that a snapshot-controller creates for a
// VolumeSnapshot.
func ContentName(snapshot types.UID) string { return contentPrefix + string(snapshot) }

// SnapshotOf is the UID in the name of a content that a snapshot-controller created; empty if
// it is another name.
func SnapshotOf(content string) types.UID {
	uid, found := strings.CutPrefix(content, contentPrefix)
	if !found {
		return ""
	}
	return types.UID(uid)
}

// RootOf is the VolumeSnapshot that a content is for.
func RootOf(content *snapshotv1.VolumeSnapshotContent) types.NamespacedName {
	ref := content.Spec.VolumeSnapshotRef
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}

// Own reports whether Xylem is the driver of a content of the host.
func Own(content *snapshotv1.VolumeSnapshotContent) bool {
	return content.Spec.Driver == v1alpha1.ProvisionerName
}

// PlacedIn is the cluster ID of the member that has, or may have, the snapshot of a content
// of the host; empty if none does.
func PlacedIn(content *snapshotv1.VolumeSnapshotContent) string {
	return content.Annotations[v1alpha1.AnnotationPlacedIn]
}

// Announced reports whether the snapshot-controller says that a content's VolumeSnapshot is
// being deleted, or was.
func Announced(content *snapshotv1.VolumeSnapshotContent) bool {
	return metav1.HasAnnotation(content.ObjectMeta, AnnBeingDeleted)
}

// Held reports whether a content waits for its driver.
func Held(content *snapshotv1.VolumeSnapshotContent) bool {
	return slices.Contains(content.Finalizers, FinalizerContent)
}

// Abandoned reports whether an admin gives up the snapshot that a content represents.
func Abandoned(content *snapshotv1.VolumeSnapshotContent) bool {
	return content.Annotations[v1alpha1.AnnotationAbandon] == "true"
}

// Gone reports whether a content's member was deregistered.
func Gone(content *snapshotv1.VolumeSnapshotContent) bool {
	return content.Annotations[v1alpha1.AnnotationClusterGone] != ""
}

// MayChangeMode reports whether an admin allows volumes of another volume mode than that of the
// content's source (external-provisioner, getSnapshotSource).
func MayChangeMode(content *snapshotv1.VolumeSnapshotContent) bool {
	allowed, err := strconv.ParseBool(content.Annotations[AnnAllowModeChange])
	return err == nil && allowed
}

// Record is what a content of the host says of its leaf.
type Record struct {
	// Snapshot and Content are the UIDs of the leaf VolumeSnapshot and its content; empty
	// if Xylem has not recorded them.
	Snapshot, Content types.UID
	// Handle of the member's driver.
	Handle string
}

// RecordOf a content of the host.
func RecordOf(content *snapshotv1.VolumeSnapshotContent) Record {
	return Record{
		Snapshot: types.UID(content.Annotations[v1alpha1.AnnotationLeafSnapshotUID]),
		Content:  types.UID(content.Annotations[v1alpha1.AttributeLeafUID]),
		Handle:   content.Annotations[v1alpha1.AttributeHandle],
	}
}

// Names reports whether a leaf content has the handle that is recorded, if one is. A csi-snapshotter
// sets it once, and clears it in a content that is being deleted, when the snapshot is gone.
func (r Record) Names(leaf *snapshotv1.VolumeSnapshotContent) bool {
	handle := HandleOf(leaf)
	return r.Handle == "" || handle == r.Handle || handle == "" && leaf.DeletionTimestamp != nil
}

// LeafContent is the name of the leaf content that a content of the host records; empty if it
// records none.
func LeafContent(content *snapshotv1.VolumeSnapshotContent) string {
	if uid := RecordOf(content).Snapshot; uid != "" {
		return ContentName(uid)
	}
	return ""
}
