package volume

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
)

// SourceInMember is the data source of a claim, with the source's objects in the member.
type SourceInMember struct {
	// Of is the source that the claim names. At is the source's location.
	Of mirror.DataSource
	At placement.CopyLocation
	// Class is the leaf claim's class.
	Class *storagev1.StorageClass
	// Claim is the leaf claim with the source's name. Volume is its leaf PV.
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// Snapshot is the leaf VolumeSnapshot with the source's name, and Content is its content. Unread
	// is why Xylem cannot read the member's snapshots.
	Snapshot        *snapshotv1.VolumeSnapshot
	Content         *snapshotv1.VolumeSnapshotContent
	UnreadableCause *mirror.Refusal
	// Origin is the stamp of Claim or of Snapshot.
	Origin mirror.Origin
}

// LeafObject returns the member's object with the source's name, and false if it does not exist.
func (f *SourceInMember) LeafObject() (metav1.Object, bool) {
	if f.Of.IsSnapshot() {
		return f.Snapshot, f.Snapshot != nil
	}
	return f.Claim, f.Claim != nil
}

// PinnedBySource reports whether the root's data source is in one member, so that the claim must be created
// there.
func (s *Observed) PinnedBySource() bool {
	source, has := mirror.DataSourceOf(s.Root)
	return has && source.IsInOneMember()
}

// SourceUnrecorded reports whether the controller source has yet to record the location of the
// root's data source.
func (s *Observed) SourceUnrecorded() bool {
	_, recorded := mirror.DataSourceRecordOf(s.Root)
	return s.PinnedBySource() && !recorded
}

// SourceNotReadyHere reports whether the root's data source is not ready in this member, or is not recorded
// as being there. host_claim reports why, and the controller source selects the member.
func (s *Observed) SourceNotReadyHere() bool {
	if !s.PinnedBySource() {
		return false
	}
	from := s.ObservedSource()
	if from == nil {
		return true // not observed
	}
	record, recorded := mirror.DataSourceRecordOf(s.Root)
	return from.At.Refusal != nil || from.At.ClusterID != s.Member.ClusterID || !recorded || record != from.At.DataSourceRecord
}

// ObservedSource returns the root's data source in the member. It returns nil if the root has no data source,
// or is already bound to a volume.
func (s *Observed) ObservedSource() *SourceInMember {
	if s.Placement == nil {
		return nil
	}
	return s.Placement.Source
}

// SourceGoneOrReplaced reports whether the source of the leaf claim was deleted in the member, or replaced,
// so that a copy would have other data. Provisioning that has already begun continues with the
// earlier source.
func (s *Observed) SourceGoneOrReplaced() bool {
	from := s.ObservedSource()
	if from == nil || s.LeafClaim == nil || !from.Of.IsInOneMember() || from.UnreadableCause != nil {
		return false
	}
	_, found := from.LeafObject()
	was := mirror.DataSourceUIDOfLeaf(s.LeafClaim)
	return was != "" && (!found || from.Origin.UID != was)
}

// DataSourceDiffers reports whether the leaf claim was not created from the root's data source, so that its
// volume would be empty or have other data. A root that is already bound to a volume does
// not need its source.
func (s *Observed) DataSourceDiffers() bool {
	if s.Root == nil || s.LeafClaim == nil || s.Root.Spec.VolumeName != "" && !hostpv.IsPromiseName(s.Root.Spec.VolumeName) || !mirror.HasDataSource(s.Root) {
		return false
	}
	return !mirror.SameDataSource(s.Root, s.LeafClaim) || s.SourceNameReused && (!s.LeafStamped || s.Stamp.UID != s.Root.UID)
}
