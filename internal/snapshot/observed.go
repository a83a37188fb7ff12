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

// Observed is one snapshot, with all that concerns it in the host and in one member. Nil is
// absent.
type Observed struct {
	// Member that has the snapshot, or is to take it; without a registration if nothing is
	// known of its cluster.
	Member mirror.Member
	// Linked: one of the member's controllers observes. host_snapshot sees no member.
	Linked bool
	// UID of the host's VolumeSnapshot.
	UID types.UID

	// Host is the content of the host. Root is the VolumeSnapshot of that UID.
	Host *snapshotv1.VolumeSnapshotContent
	Root *snapshotv1.VolumeSnapshot
	// Invalid is why Xylem can't take a snapshot of the source at present.
	Invalid *mirror.Refusal
	// Away is why the member does not answer; only host_snapshot observes it.
	Away *mirror.Refusal

	// Unavailable is why the snapshots of the member can't be read.
	Unavailable *mirror.Refusal
	// Origin is the stamp that leaves of the snapshot have.
	Origin mirror.Origin
	// Leaf is the member's VolumeSnapshot. OtherLeaf has its origin, and another UID than
	// Host records.
	Leaf, OtherLeaf *snapshotv1.VolumeSnapshot
	// Content is that VolumeSnapshot's content. OtherContent has its name, and is another
	// snapshot than Host records.
	Content, OtherContent *snapshotv1.VolumeSnapshotContent
	// NameTaken: the name that Leaf is to have is another object's; Earlier: of an earlier
	// root's leaf.
	NameTaken, Earlier bool
	// Class of the member, and Unmet why there is none, or no leaf claim to take the
	// snapshot of.
	Class string
	Unmet *mirror.Refusal
}

// Record is what the host's content says of the leaves.
func (s *Observed) Record() mirrorsnapshot.Record {
	if s.Host == nil {
		return mirrorsnapshot.Record{}
	}
	return mirrorsnapshot.RecordOf(s.Host)
}

// Replaced reports whether a leaf content is another snapshot than Host records: it was created
// again and is not of the same one, or somebody gave it another handle.
func (s *Observed) Replaced(content *snapshotv1.VolumeSnapshotContent) bool {
	record := s.Record()
	return record.Content != "" && content.UID != record.Content && !s.Recreated(content) || !record.Names(content)
}

// Recreated reports whether a content of the recorded leaf, with another UID than Host records, is
// of the same snapshot: a member's snapshot-controller creates a content again that somebody
// deleted, and drivers take a snapshot of one name once. One that the driver took later has
// other data, which matters as long as somebody may restore them.
func (s *Observed) Recreated(content *snapshotv1.VolumeSnapshotContent) bool {
	record := s.Record()
	if s.Leaf == nil || s.Leaf.UID != record.Snapshot || record.Handle == "" || mirrorsnapshot.HandleOf(content) != record.Handle {
		return false
	}
	ends := s.Host.DeletionTimestamp != nil && s.RootEnded()
	return ends || s.Host.Status != nil && s.Host.Status.CreationTime != nil && ptr.Equal(s.Host.Status.CreationTime, content.Status.CreationTime)
}

// RootEnded reports whether the host's VolumeSnapshot is gone, or is being deleted, which
// cannot be undone.
func (s *Observed) RootEnded() bool { return s.Root == nil || s.Root.DeletionTimestamp != nil }

// Stamped reports whether the leaf content has the stamp of this snapshot, and a record of the
// member's policy.
func (s *Observed) Stamped() bool {
	origin, ours := mirror.OriginIn(s.Member.HostID, s.Content)
	return ours && origin == s.Origin && mirrorsnapshot.Policy(s.Content) != ""
}

// SecuredContent is the leaf content as it has to be while it is in use; nil if it is.
func (s *Observed) SecuredContent() *snapshotv1.VolumeSnapshotContent {
	return mirrorsnapshot.Secured(s.Content, s.Origin)
}

// Destroys reports whether the snapshot is to go: both policies say so, and the
// snapshot-controller says that its VolumeSnapshot is deleted. A content that is not stamped
// yet is stamped first.
func (s *Observed) Destroys() bool {
	return s.Host.DeletionTimestamp != nil && mirrorsnapshot.Announced(s.Host) && s.Host.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete &&
		(s.Content == nil || !s.Stamped() || mirrorsnapshot.Policy(s.Content) == snapshotv1.VolumeSnapshotContentDelete)
}

// Recorded reports whether the host's content records the leaf content, with the handle that
// the driver gave it.
func (s *Observed) Recorded() bool {
	record := s.Record()
	return record.Content == s.Content.UID && record.Handle == mirrorsnapshot.HandleOf(s.Content)
}

// Ready reports whether the host's content is ready to be restored from.
func (s *Observed) Ready() bool {
	return s.Host.Status != nil && ptr.Deref(s.Host.Status.ReadyToUse, false)
}

// Status is what the host's content has to have as its status: the problem if there is one, else
// what the member says.
func (s *Observed) Status(problem *mirror.Refusal, now time.Time) *snapshotv1.VolumeSnapshotContentStatus {
	switch {
	case problem != nil:
		return mirrorsnapshot.Failed(s.Host, problem, now)
	case s.Content != nil && s.Stamped():
		return mirrorsnapshot.Mirrored(s.Host, s.Content, s.Member)
	case s.Leaf != nil && s.Content == nil:
		return mirrorsnapshot.Unanswered(s.Host, s.Leaf)
	}
	return mirrorsnapshot.Waiting(s.Host)
}

// ClaimOf is the name of the claim that a VolumeSnapshot is of; without a name if it is of none.
func ClaimOf(root *snapshotv1.VolumeSnapshot) types.NamespacedName {
	if root == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: root.Namespace, Name: ptr.Deref(root.Spec.Source.PersistentVolumeClaimName, "")}
}

// Released reports whether nothing more is to be done in the member: an admin abandons the
// snapshot, or the member is no longer registered.
func (s *Observed) Released() bool {
	return mirrorsnapshot.Abandoned(s.Host) || mirrorsnapshot.Gone(s.Host) && s.Member.Registration == ""
}

// Counted is how a content of the host counts in its registration's status.
func Counted(content *snapshotv1.VolumeSnapshotContent, counts *v1alpha1.SnapshotCounts) {
	switch {
	case content.DeletionTimestamp != nil:
		counts.Deleting++
	case content.Status != nil && ptr.Deref(content.Status.ReadyToUse, false):
		counts.Ready++
	default:
		counts.Pending++
	}
}

// Source is what the snapshot-controller looked up in the host: the claim of a VolumeSnapshot,
// and the claim's volume.
type Source struct {
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
}
