package volume

import (
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/datasource"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/placement"
)

// From is the data source of a claim, with its objects in the member.
type From struct {
	// Of is the source that the claim names. At is its location.
	Of datasource.Source
	At placement.Location
	// Class is the leaf claim's class.
	Class *storagev1.StorageClass
	// Claim is the leaf claim with the source's name. Volume is its leaf PV.
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// Snapshot is the leaf VolumeSnapshot with the source's name, and Content its content. Unread
	// is why Xylem can't read the member's snapshots.
	Snapshot *snapshotv1.VolumeSnapshot
	Content  *snapshotv1.VolumeSnapshotContent
	Unread   *mirror.Refusal
	// Origin is the stamp of Claim or of Snapshot.
	Origin mirror.Origin
}

// leaf returns the object with the source's name in the member, and false if there is none.
func (f *From) leaf() (metav1.Object, bool) {
	if f.Of.IsSnapshot() {
		return f.Snapshot, f.Snapshot != nil
	}
	return f.Claim, f.Claim != nil
}

// Pinned reports whether the root's data source is in one member, which must have the claim.
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

// SourceAway reports whether the root's data source is not in this member, or is not recorded as
// being there. host_claim reports why, and the controller source selects the member.
func (s *Observed) SourceAway() bool {
	if !s.Pinned() {
		return false
	}
	from := s.from()
	if from == nil {
		return true // not looked up
	}
	record, recorded := datasource.RecordOf(s.Root)
	return from.At.Refusal != nil || from.At.ClusterID != s.Member.ClusterID || !recorded || record != from.At.Record
}

// from returns the root's data source in the member. It is nil if the root has none, or has a
// volume.
func (s *Observed) from() *From {
	if s.Placement == nil {
		return nil
	}
	return s.Placement.From
}

// ReportSourceAway reports why Xylem does not create the claim from its source here. The claim is
// bound to a promise.
func (s *Observed) ReportSourceAway() *mirror.Refusal {
	from := s.from()
	if from == nil {
		return nil
	}
	if from.At.Refusal != nil {
		return from.At.Refusal
	}
	return mirror.Refuse(v1alpha1.ReasonSourceElsewhere, "the data source of the claim, %s, is not in member %q. Run the Pod in the member that has the source", from.Of, s.Member.Registration)
}

// ReportSource reports why this member cannot create the claim from its source, or nil.
func (s *Observed) ReportSource() *mirror.Refusal {
	from := s.from()
	if from == nil || !from.Of.Placed() || s.SourceAway() {
		return nil
	}
	if from.Unread != nil {
		return s.sourceNotReady("%[2]s", from.Unread.Message)
	}
	switch leaf, found := from.leaf(); {
	case !found || from.Origin.UID != from.At.UID:
		return s.sourceNotReady("member %q has no counterpart of it")
	case leaf.GetDeletionTimestamp() != nil:
		return s.sourceNotReady("its counterpart in member %q is being deleted")
	case from.Of.IsSnapshot():
		return s.reportSnapshot()
	}
	return s.reportClaim()
}

// reportClaim is ReportSource for a clone.
func (s *Observed) reportClaim() *mirror.Refusal {
	from := s.from()
	if from.Claim.Status.Phase != corev1.ClaimBound || from.Claim.Spec.VolumeName != from.At.LeafVolume || from.Volume == nil || from.Volume.UID != from.At.LeafUID {
		return s.sourceNotReady("its counterpart in member %q is not bound to its volume")
	}
	driver, _ := hostpv.SourceOf(from.Volume)
	return s.otherDriver(driver)
}

// reportSnapshot is ReportSource for a restore.
func (s *Observed) reportSnapshot() *mirror.Refusal {
	from := s.from()
	if how := from.At.Replaced(from.Snapshot, from.Content); how != "" {
		return s.sourceNotReady("its counterpart in member %q %s", how)
	}
	if from.Snapshot.Status == nil || from.Content == nil || from.Content.Status == nil || !ptr.Deref(from.Content.Status.ReadyToUse, false) {
		return s.sourceNotReady("its counterpart in member %q is not ready to use")
	}
	return s.otherDriver(from.Content.Spec.Driver)
}

// otherDriver reports that the claim's class in the member does not use the source's driver.
func (s *Observed) otherDriver(driver string) *mirror.Refusal {
	from := s.from()
	if from.Class == nil || from.Class.Provisioner == driver {
		return nil
	}
	return mirror.Refuse(v1alpha1.ReasonSourceMismatch, "the data source of the claim, %s, belongs to driver %q in member %q, but its StorageClass %q there belongs to %q: a driver can copy only its own volumes. Delete this claim and create it again with a StorageClass of the source's driver",
		from.Of, driver, s.Member.Registration, from.Class.Name, from.Class.Provisioner)
}

func (s *Observed) sourceNotReady(format string, args ...any) *mirror.Refusal {
	cause := fmt.Sprintf(format, append([]any{s.Member.Registration}, args...)...)
	return mirror.Refuse(v1alpha1.ReasonSourceNotReady, "the claim waits for its data source, %s: %s", s.from().Of, cause)
}

// SourceLost reports whether the source of the leaf claim was deleted in the member, or replaced,
// so that a copy would have other data. A running provisioner keeps its source.
func (s *Observed) SourceLost() bool {
	from := s.from()
	if from == nil || s.Claim == nil || !from.Of.Placed() || from.Unread != nil {
		return false
	}
	_, found := from.leaf()
	was := datasource.OfLeaf(s.Claim)
	return was != "" && (!found || from.Origin.UID != was)
}

// Unlike reports whether the leaf claim is not created from the root's data source. Its volume
// would be empty or have other data. A root that has a volume needs no source.
func (s *Observed) Unlike() bool {
	if s.Root == nil || s.Claim == nil || s.Root.Spec.VolumeName != "" && !hostpv.NamesPromise(s.Root.Spec.VolumeName) || !datasource.Has(s.Root) {
		return false
	}
	return !datasource.Same(s.Root, s.Claim) || s.Namesake && (!s.Stamped || s.Stamp.UID != s.Root.UID)
}

// ReportUnlike reports that the member's volume is not a copy of the claim's source.
func (s *Observed) ReportUnlike() *mirror.Refusal {
	of, _ := datasource.Of(s.Root)
	return mirror.Refuse(v1alpha1.ReasonSourceMismatch, "the data source of the claim is %s, but its counterpart \"%s/%s\" in member %q was not created from it: it names another source there, or none, or the source was replaced while it was copied. Xylem does not use its volume. Delete this claim and create it again",
		of, s.Claim.Namespace, s.Claim.Name, s.Member.Registration)
}
