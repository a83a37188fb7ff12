package volume

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
)

// From is the data source of a claim, with the source's objects in the member.
type From struct {
	// Of is the source that the claim names. At is the source's location.
	Of datasource.Source
	At placement.CopyLocation
	// Class is the leaf claim's class.
	Class *storagev1.StorageClass
	// Claim is the leaf claim with the source's name. Volume is its leaf PV.
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// Snapshot is the leaf VolumeSnapshot with the source's name, and Content is its content. Unread
	// is why Xylem cannot read the member's snapshots.
	Snapshot *snapshotv1.VolumeSnapshot
	Content  *snapshotv1.VolumeSnapshotContent
	Unread   *mirror.Refusal
	// Origin is the stamp of Claim or of Snapshot.
	Origin mirror.Origin
}

// Leaf returns the member's object with the source's name, and false if it does not exist.
func (f *From) Leaf() (metav1.Object, bool) {
	if f.Of.IsSnapshot() {
		return f.Snapshot, f.Snapshot != nil
	}
	return f.Claim, f.Claim != nil
}

// Pinned reports whether the root's data source is in one member, so that the claim must be created
// there.
func (s *Observed) Pinned() bool {
	source, has := datasource.Of(s.Root)
	return has && source.Placed()
}

// SourceUnrecorded reports whether the controller source has yet to record the location of the
// root's data source.
func (s *Observed) SourceUnrecorded() bool {
	_, recorded := datasource.RecordOf(s.Root)
	return s.Pinned() && !recorded
}

// SourceAway reports whether the root's data source is not ready in this member, or is not recorded
// as being there. host_claim reports why, and the controller source selects the member.
func (s *Observed) SourceAway() bool {
	if !s.Pinned() {
		return false
	}
	from := s.From()
	if from == nil {
		return true // not observed
	}
	record, recorded := datasource.RecordOf(s.Root)
	return from.At.Refusal != nil || from.At.ClusterID != s.Member.ClusterID || !recorded || record != from.At.Record
}

// From returns the root's data source in the member. It returns nil if the root has no data source,
// or is already bound to a volume.
func (s *Observed) From() *From {
	if s.Placement == nil {
		return nil
	}
	return s.Placement.From
}

// SourceLost reports whether the source of the leaf claim was deleted in the member, or replaced,
// so that a copy would have other data. Provisioning that has already begun continues with the
// earlier source.
func (s *Observed) SourceLost() bool {
	from := s.From()
	if from == nil || s.Claim == nil || !from.Of.Placed() || from.Unread != nil {
		return false
	}
	_, found := from.Leaf()
	was := datasource.OfLeaf(s.Claim)
	return was != "" && (!found || from.Origin.UID != was)
}

// Unlike reports whether the leaf claim was not created from the root's data source, so that its
// volume would be empty or have other data. A root that is already bound to a volume does
// not need its source.
func (s *Observed) Unlike() bool {
	if s.Root == nil || s.Claim == nil || s.Root.Spec.VolumeName != "" && !hostpv.NamesPromise(s.Root.Spec.VolumeName) || !datasource.Has(s.Root) {
		return false
	}
	return !datasource.Same(s.Root, s.Claim) || s.Namesake && (!s.Stamped || s.Stamp.UID != s.Root.UID)
}
