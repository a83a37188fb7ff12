package placement

import (
	"fmt"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// maxSnapshotErrorLength is the maximum length in bytes of a snapshot's error in a message about a claim.
const maxSnapshotErrorLength = 500

// locateSnapshot finds the member that has a ready snapshot.
func (s *CopySource) locateSnapshot(claim *corev1.PersistentVolumeClaim) CopyLocation {
	record, recorded := mirror.DataSourceRecordOf(claim)
	switch from := s.Snapshot; {
	case s.Unserved:
		return CopyLocation{Refusal: mirror.NewRefusal(v1alpha1.ReasonSourceNotReady,
			"the data source of the claim is %s, but the host does not serve snapshots. Install the VolumeSnapshot CustomResourceDefinitions and the snapshot-controller in the host", s.Of)}
	case from == nil && recorded:
		return CopyLocation{Refusal: s.goneRefusal("was deleted")}
	case from == nil:
		return s.notReadyLocation("does not exist in this namespace. Create the snapshot, or delete this claim")
	case recorded && from.UID != record.UID:
		return CopyLocation{Refusal: s.goneRefusal("was deleted, and another snapshot has its name now")}
	case from.DeletionTimestamp != nil && (!recorded || !s.snapshotKept(claim)):
		return CopyLocation{Refusal: s.goneRefusal("is being deleted")}
	}
	return s.locateContent(claim)
}

// snapshotKept reports whether a deleted snapshot is kept for a claim. The snapshot-controller keeps its finalizer
// until no claim that is being restored is Pending. It may announce the deletion on the content before
// that, whenever the content changes (external-snapshotter/pkg/common-controller: syncContent). Xylem keeps
// the content, even while it is being deleted, for claims that are bound to promises.
func (s *CopySource) snapshotKept(claim *corev1.PersistentVolumeClaim) bool {
	return s.Content != nil && (boundToPromise(claim) || s.Content.DeletionTimestamp == nil && slices.Contains(s.Snapshot.Finalizers, mirrorsnapshot.FinalizerRestored))
}

// locateContent finds the snapshot's content, which records the location of its leaf.
func (s *CopySource) locateContent(claim *corev1.PersistentVolumeClaim) CopyLocation {
	from, content := s.Snapshot, s.Content
	if from.Status == nil || from.Status.BoundVolumeSnapshotContentName == nil || content == nil {
		return s.snapshotNotReady(snapshotStatusError(from.Status))
	}
	ref := content.Spec.VolumeSnapshotRef
	switch {
	case ref.UID != from.UID || ref.Namespace != from.Namespace || ref.Name != from.Name || content.Name != *from.Status.BoundVolumeSnapshotContentName:
		return s.notReadyLocation("is bound to the VolumeSnapshotContent of another VolumeSnapshot")
	case !mirrorsnapshot.IsXylemContent(content):
		return CopyLocation{Refusal: mirror.NewRefusal(v1alpha1.ReasonDataSourceUnsupported,
			"the data source of the claim is %s, which is not in a member (driver %q): Xylem restores only snapshots that are in a member. Use a StorageClass with that driver, or another source", s.Of, content.Spec.Driver)}
	case mirrorsnapshot.IsAbandonedSnapshot(content):
		return CopyLocation{Refusal: s.goneRefusal("was abandoned by an admin")}
	}
	has := mirrorsnapshot.ContentRecordOf(content)
	if content.Status == nil || !ptr.Deref(content.Status.ReadyToUse, false) || has.Snapshot == "" || has.Content == "" || has.Handle == "" || mirrorsnapshot.ContentPlacedIn(content) == "" {
		return s.snapshotNotReady(contentStatusError(content.Status))
	}
	if mismatch := s.snapshotMismatch(claim); mismatch != nil {
		return CopyLocation{Refusal: mismatch}
	}
	return CopyLocation{
		DataSourceRecord: mirror.DataSourceRecord{ClusterID: mirrorsnapshot.ContentPlacedIn(content), UID: from.UID},
		LeafSnapshot:     has.Snapshot, LeafContent: has.Content, LeafHandle: has.Handle,
	}
}

// Unready describes why a member's VolumeSnapshot and its content are not those of the recorded
// snapshot, or are not ready to use. It returns "" if the member can restore the snapshot. The member's
// provisioner restores the content to which the leaf is bound, by its handle.
func (at CopyLocation) Unready(origin mirror.Origin, leaf *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent) string {
	switch bound := leaf.Status; {
	case !origin.IsStampedOn(leaf):
		return "has lost the labels and annotations by which Xylem recognizes it"
	case leaf.UID != at.LeafSnapshot:
		return "was replaced"
	case bound != nil && ptr.Deref(bound.BoundVolumeSnapshotContentName, "") != mirrorsnapshot.ContentName(leaf.UID):
		return "is bound to a different VolumeSnapshotContent than when it was taken"
	case content != nil && (content.UID != at.LeafContent || !mirrorsnapshot.IsContentOfSnapshot(content, leaf.UID)):
		return "has a different VolumeSnapshotContent than when it was taken"
	case content != nil && !mirrorsnapshot.ContentRecord{Handle: at.LeafHandle}.MatchesHandleOf(content):
		return "refers to a different snapshot in its driver than when it was taken"
	case content != nil && !origin.IsStampedOn(content):
		return "has a VolumeSnapshotContent without the labels and annotations by which Xylem recognizes it"
	case bound == nil || content == nil || content.Status == nil || !ptr.Deref(content.Status.ReadyToUse, false):
		return "is not ready to use"
	}
	return ""
}

// snapshotNotReady reports that the snapshot is not ready, and quotes the error in its status.
func (s *CopySource) snapshotNotReady(failed *snapshotv1.VolumeSnapshotError) CopyLocation {
	if failed == nil || failed.Message == nil {
		return s.notReadyLocation("is not ready to use. `kubectl describe volumesnapshot %s` shows why", s.Of.Name)
	}
	return s.notReadyLocation("is not ready to use (%s)", strings.TrimSpace(mirror.PlainText(*failed.Message, maxSnapshotErrorLength)))
}

func snapshotStatusError(status *snapshotv1.VolumeSnapshotStatus) *snapshotv1.VolumeSnapshotError {
	if status == nil {
		return nil
	}
	return status.Error
}

func contentStatusError(status *snapshotv1.VolumeSnapshotContentStatus) *snapshotv1.VolumeSnapshotError {
	if status == nil {
		return nil
	}
	return status.Error
}

// snapshotMismatch returns why a member's provisioner would reject the claim
// (external-provisioner, getSnapshotSource, and its check of the volume mode).
func (s *CopySource) snapshotMismatch(claim *corev1.PersistentVolumeClaim) *mirror.Refusal {
	wants, least := claim.Spec.Resources.Requests[corev1.ResourceStorage], minimumRestoreSize(s.Content)
	if wants.Cmp(least) < 0 {
		return mirror.NewRefusal(v1alpha1.ReasonSourceMismatch, "the claim requests %s, but its data source, %s, needs %s: a restored volume cannot be smaller. Delete this claim and create it again with %[3]s or more",
			wants.String(), s.Of, least.String())
	}
	if s.Content.Spec.SourceVolumeMode == nil || mirrorsnapshot.MayChangeVolumeMode(s.Content) {
		return nil
	}
	refusal := s.volumeModeMismatch(claim, *s.Content.Spec.SourceVolumeMode)
	if refusal != nil {
		refusal.Message += fmt.Sprintf(", or ask the admins to set the annotation %s=true on VolumeSnapshotContent %q in the host, and on %q in the member",
			mirrorsnapshot.AnnAllowModeChange, s.Content.Name, mirrorsnapshot.LeafContentName(s.Content))
	}
	return refusal
}

// minimumRestoreSize returns the minimum size of a volume that is restored from a snapshot, or zero if
// the driver does not report it.
func minimumRestoreSize(content *snapshotv1.VolumeSnapshotContent) resource.Quantity {
	return *resource.NewQuantity(ptr.Deref(content.Status.RestoreSize, 0), resource.BinarySI)
}
