package snapshot

import (
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
)

// Observed is one snapshot with all related objects in the host and one member. An object that does
// not exist is nil.
type Observed struct {
	// Member has the snapshot, or will take it. Its Registration is empty if the cluster is not
	// registered.
	Member mirror.Member
	// Linked is true for the member's controllers, and false for host_snapshot, which does not
	// observe members.
	Linked bool
	// UID is the UID of the host's VolumeSnapshot.
	UID types.UID

	// Host is the host content. Root is the host's VolumeSnapshot, if it has UID.
	Host *snapshotv1.VolumeSnapshotContent
	Root *snapshotv1.VolumeSnapshot
	// Invalid explains why Xylem can't take a snapshot of the source at present or, if it is placed, why
	// the member's controllers do not observe it.
	Invalid *mirror.Refusal
	// Away explains why the member is unreachable. Only host_snapshot sets it.
	Away *mirror.Refusal

	// Unavailable explains why Xylem can't read the member's snapshots.
	Unavailable *mirror.Refusal
	// Origin is the stamp of the snapshot's leaves.
	Origin mirror.Origin
	// Leaf is the member's VolumeSnapshot. OtherLeaf has the same origin, but not the UID that is
	// recorded on Host.
	Leaf, OtherLeaf *snapshotv1.VolumeSnapshot
	// Content is the content of Leaf. OtherContent has the same name, but represents a different
	// snapshot than the one recorded on Host.
	Content, OtherContent *snapshotv1.VolumeSnapshotContent
	// NameTaken means that a foreign object has the name of Leaf, and EarlierLeafExists that the leaf of
	// an earlier root has it.
	NameTaken, EarlierLeafExists bool
	// LeafLostStamp means that the leaf that Host records, or that Content was created for, exists, but
	// somebody removed or changed its stamp.
	LeafLostStamp bool
	// Class is the member's class. Unmet explains why the member cannot take the snapshot yet, for
	// example because it lacks the class or the leaf claim.
	Class string
	Unmet *mirror.Refusal
	// Disk is the driver's handle of the disk that the claim has now, while the snapshot has no leaf.
	Disk string
	// ClaimsToRestore names the claims that will be restored from a snapshot that must be destroyed.
	ClaimsToRestore []string
	// Silent is set if the snapshot has been waiting for the member's snapshot-controller or
	// csi-snapshotter, or until an earlier root's leaf is gone, for a long time. SilenceDueIn is how long to
	// wait until this must be checked, or 0. Only leaf_snapshot observes them.
	Silent       *mirror.Refusal
	SilenceDueIn time.Duration
}

// LeafRecord returns the host content's record of the leaves.
func (s *Observed) LeafRecord() mirrorsnapshot.ContentRecord {
	if s.Host == nil {
		return mirrorsnapshot.ContentRecord{}
	}
	return mirrorsnapshot.ContentRecordOf(s.Host)
}

// RepresentsOtherSnapshot reports whether a leaf content represents a different snapshot than the one recorded on
// Host: it was re-created for a different snapshot, a user changed its handle, or the snapshot is of
// another disk.
func (s *Observed) RepresentsOtherSnapshot(content *snapshotv1.VolumeSnapshotContent) bool {
	record := s.LeafRecord()
	return record.Content != "" && content.UID != record.Content && !s.IsRecreatedContent(content) || !record.MatchesHandleOf(content) || !record.MatchesDiskOf(content)
}

// IsRecreatedContent reports whether content still represents the recorded snapshot, under a new UID. A
// member's snapshot-controller re-creates a content that a user deleted, and a driver takes only
// one snapshot per name. If the driver did take another snapshot later, its data differs, which
// matters while claims may be restored from it.
func (s *Observed) IsRecreatedContent(content *snapshotv1.VolumeSnapshotContent) bool {
	record := s.LeafRecord()
	if s.Leaf == nil || s.Leaf.UID != record.Snapshot || record.Handle == "" || mirrorsnapshot.SnapshotHandleOf(content) != record.Handle {
		return false
	}
	ends := s.Host.DeletionTimestamp != nil && s.HasRootEnded()
	return ends || s.Host.Status != nil && s.Host.Status.CreationTime != nil && ptr.Equal(s.Host.Status.CreationTime, content.Status.CreationTime)
}

// HasRootEnded reports whether the host's VolumeSnapshot was deleted or is being deleted, which cannot
// be undone.
func (s *Observed) HasRootEnded() bool { return s.Root == nil || s.Root.DeletionTimestamp != nil }

// IsContentStamped reports whether the leaf content has this snapshot's stamp and records the member's
// policy.
func (s *Observed) IsContentStamped() bool {
	return s.Origin.IsStampedOn(s.Content) && mirrorsnapshot.MemberDeletionPolicy(s.Content) != ""
}

// SecuredContent returns the leaf content with the stamp and policy Retain added, or nil if the
// content already has both.
func (s *Observed) SecuredContent() *snapshotv1.VolumeSnapshotContent {
	return mirrorsnapshot.SecuredContent(s.Content, s.Origin)
}

// MustDestroySnapshot reports whether the snapshot must be destroyed: both policies are Delete, and the
// snapshot-controller has announced that the VolumeSnapshot is being deleted. An unstamped content
// must be stamped first.
func (s *Observed) MustDestroySnapshot() bool {
	return s.Host.DeletionTimestamp != nil && mirrorsnapshot.IsSnapshotBeingDeleted(s.Host) && s.Host.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete &&
		(s.Content == nil || !s.IsContentStamped() || mirrorsnapshot.MemberDeletionPolicy(s.Content) == snapshotv1.VolumeSnapshotContentDelete)
}

// IsContentRecorded reports whether the leaf content and its driver's handle are recorded on the host
// content.
func (s *Observed) IsContentRecorded() bool {
	record := s.LeafRecord()
	return record.Content == s.Content.UID && record.Handle == mirrorsnapshot.SnapshotHandleOf(s.Content)
}

// IsHostContentReady reports whether the host content is ready to use.
func (s *Observed) IsHostContentReady() bool {
	return s.Host.Status != nil && ptr.Deref(s.Host.Status.ReadyToUse, false)
}

// DesiredHostStatus returns the status for the host content: the problem if there is one, or else the member's
// status.
func (s *Observed) DesiredHostStatus(problem *mirror.Refusal, now time.Time) *snapshotv1.VolumeSnapshotContentStatus {
	switch {
	case problem != nil:
		status := mirrorsnapshot.FailedStatus(s.Host, problem, now)
		if len(s.ClaimsToRestore) > 0 && s.Content != nil {
			status.ReadyToUse = mirrorsnapshot.MirroredStatus(s.Host, s.Content, s.Member).ReadyToUse // claims will be restored from it
		}
		return status
	case s.Content != nil && s.IsContentStamped():
		return mirrorsnapshot.MirroredStatus(s.Host, s.Content, s.Member)
	case s.Leaf != nil && s.Content == nil:
		return mirrorsnapshot.StatusWithoutContent(s.Host, s.Leaf)
	}
	return mirrorsnapshot.WaitingStatus(s.Host)
}

// SourceClaimKey returns the name of a VolumeSnapshot's source claim, or an empty name.
func SourceClaimKey(root *snapshotv1.VolumeSnapshot) types.NamespacedName {
	if root == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: root.Namespace, Name: ptr.Deref(root.Spec.Source.PersistentVolumeClaimName, "")}
}

// IsSnapshotReleased reports whether Xylem no longer acts on the snapshot in the member, because an admin
// abandoned the snapshot or the member was deregistered.
func (s *Observed) IsSnapshotReleased() bool {
	return mirrorsnapshot.IsAbandonedSnapshot(s.Host) || mirrorsnapshot.IsClusterGone(s.Host) && s.Member.Registration == ""
}

// CountSnapshot adds a host content to its registration's counts.
func CountSnapshot(content *snapshotv1.VolumeSnapshotContent, counts *v1alpha1.SnapshotCounts) {
	switch {
	case content.DeletionTimestamp != nil:
		counts.Deleting++
	case content.Status != nil && ptr.Deref(content.Status.ReadyToUse, false):
		counts.Ready++
	default:
		counts.Pending++
	}
}

// SnapshotSource is a VolumeSnapshot's claim in the host, and the claim's volume.
type SnapshotSource struct {
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
}
