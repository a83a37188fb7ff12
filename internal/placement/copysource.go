package placement

import (
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// CopySource is a claim's data source in the host. An object that does not exist is nil.
type CopySource struct {
	// Of identifies the source that the claim names.
	Of mirror.DataSource
	// Claim is the source claim of a clone, and Volume the PV to which it is bound. If the recorded claim
	// is gone, Kept is the PV to which it was bound: Xylem keeps the disk for clones that are bound to promises.
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	Kept   *corev1.PersistentVolume
	// Snapshot is the source snapshot of a restore, and Content its content. Unserved is set if the
	// host does not serve snapshots.
	Snapshot *snapshotv1.VolumeSnapshot
	Content  *snapshotv1.VolumeSnapshotContent
	Unserved bool
}

// CopyLocation is the location of a claim's source.
type CopyLocation struct {
	// Record contains the source's member and UID. It is zero if there is a Refusal, and for a
	// populator's source, which may be anywhere.
	mirror.DataSourceRecord
	// LeafVolume and LeafUID identify the leaf PV of a clone's source.
	LeafVolume string
	LeafUID    types.UID
	// LeafSnapshot and LeafContent are the UIDs of the VolumeSnapshot to restore and of its content
	// in the member. LeafHandle is the driver's handle.
	LeafSnapshot, LeafContent types.UID
	LeafHandle                string
	// Refusal explains why no member can create the volume from the source. It is nil if one can.
	Refusal *mirror.Refusal
}

// Locate finds the member that can create a claim's volume from its source, or the reason why no
// member can, or can yet. It uses only the host's objects.
func (s *CopySource) Locate(claim *corev1.PersistentVolumeClaim) CopyLocation {
	if s.Of.Namespace != "" {
		return CopyLocation{Refusal: mirror.NewRefusal(v1alpha1.ReasonDataSourceUnsupported,
			"the data source of the claim is %s: Xylem does not copy data from another namespace. Use a source in the claim's own namespace", s.Of)}
	}
	var at CopyLocation
	switch {
	case s.Of.IsClaim():
		at = s.locateClaim(claim)
	case s.Of.IsSnapshot():
		at = s.locateSnapshot(claim)
	default:
		return CopyLocation{}
	}
	if at.Refusal == nil {
		at.Refusal = s.refuseOtherMember(claim, at.DataSourceRecord)
	}
	if at.Refusal != nil {
		return CopyLocation{Refusal: at.Refusal}
	}
	return at
}

func (s *CopySource) locateClaim(claim *corev1.PersistentVolumeClaim) CopyLocation {
	record, recorded := mirror.DataSourceRecordOf(claim)
	switch from := s.Claim; {
	case s.Kept != nil && boundToPromise(claim):
		return s.locateVolume(s.Kept, record.UID)
	case s.Of.Name == claim.Name:
		return CopyLocation{Refusal: mirror.NewRefusal(v1alpha1.ReasonDataSourceUnsupported, "the claim names itself as its data source. Delete the claim and create it again with another data source")}
	case from == nil && recorded:
		return CopyLocation{Refusal: s.goneRefusal("was deleted")}
	case from == nil:
		return s.notReadyLocation("does not exist in this namespace. Create the source claim, or delete this claim")
	case recorded && from.UID != record.UID:
		return CopyLocation{Refusal: s.goneRefusal("was deleted, and another claim has its name now")}
	case from.DeletionTimestamp != nil:
		return CopyLocation{Refusal: s.goneRefusal("is being deleted")}
	case from.Status.Phase == corev1.ClaimLost:
		return s.notReadyLocation("has lost its volume")
	case from.Spec.VolumeName == "" || from.Status.Phase != corev1.ClaimBound:
		return s.notReadyLocation("is not bound yet. If no Pod uses the source claim, create a Pod that does, so that its volume is provisioned")
	}
	at := s.locateVolume(s.Volume, s.Claim.UID)
	if at.Refusal == nil {
		at.Refusal = s.cloneMismatch(claim)
	}
	return at
}

// boundToPromise reports whether a claim is bound to a promise, so that Xylem keeps its source until it has a
// disk.
func boundToPromise(claim *corev1.PersistentVolumeClaim) bool {
	return hostpv.IsPromiseName(claim.Spec.VolumeName)
}

// locateVolume finds the volume of the source claim with the given UID, which must be, or have been,
// bound to it.
func (s *CopySource) locateVolume(pv *corev1.PersistentVolume, uid types.UID) CopyLocation {
	switch {
	case pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != uid:
		return s.notReadyLocation("is bound to a volume that does not exist in the host")
	case hostpv.IsUnfulfilledPromise(pv):
		return s.notReadyLocation("has no disk yet. Create a Pod that uses the source claim, so that its disk is provisioned")
	case hostpv.IsReleasingDisk(pv):
		return s.notReadyLocation("is losing its disk, because no Pod uses the claim")
	case hostpv.IsAbandonedVolume(pv):
		return CopyLocation{Refusal: s.goneRefusal("is bound to a volume that an admin has abandoned")}
	}
	cluster, leaf, leafUID, ours := hostpv.LeafOfHostVolume(pv)
	if !ours {
		return CopyLocation{Refusal: mirror.NewRefusal(v1alpha1.ReasonDataSourceUnsupported,
			"the data source of the claim is %s, whose volume %q is not in a member (driver %q): Xylem clones only volumes that are in a member. Use a StorageClass with that driver, or another source",
			s.Of, pv.Name, driverOfVolume(pv))}
	}
	return CopyLocation{DataSourceRecord: mirror.DataSourceRecord{ClusterID: cluster, UID: uid}, LeafVolume: leaf, LeafUID: leafUID}
}

// cloneMismatch returns why a member's provisioner would reject the claim (external-provisioner,
// getPVCSource). It compares the claim's request with the source's request, not with its capacity,
// which may be rounded up.
func (s *CopySource) cloneMismatch(claim *corev1.PersistentVolumeClaim) *mirror.Refusal {
	wants, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], s.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if wants.Cmp(has) < 0 {
		return mirror.NewRefusal(v1alpha1.ReasonSourceMismatch, "the claim requests %s, but its data source, %s, requests %s: a copy cannot be smaller. Delete this claim and create it again with %[3]s or more",
			wants.String(), s.Of, has.String())
	}
	return s.volumeModeMismatch(claim, ptr.Deref(s.Claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem))
}

func (s *CopySource) volumeModeMismatch(claim *corev1.PersistentVolumeClaim, has corev1.PersistentVolumeMode) *mirror.Refusal {
	if wants := ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem); wants != has {
		return mirror.NewRefusal(v1alpha1.ReasonSourceMismatch, "the claim has volumeMode %s, but its data source, %s, has volumeMode %s. Delete this claim and create it again with volumeMode %[3]s",
			wants, s.Of, has)
	}
	return nil
}

// refuseOtherMember returns a refusal if the claim is already placed in a different member than its source.
// This can happen with a promise that is released when unused.
func (s *CopySource) refuseOtherMember(claim *corev1.PersistentVolumeClaim, at mirror.DataSourceRecord) *mirror.Refusal {
	placed := claim.Annotations[v1alpha1.AnnotationPlacedIn]
	if record, recorded := mirror.DataSourceRecordOf(claim); placed == "" && recorded && claim.Spec.VolumeName != "" {
		placed = record.ClusterID // its promise selects that member
	}
	if placed == "" || placed == at.ClusterID {
		return nil
	}
	return mirror.NewRefusal(v1alpha1.ReasonSourceElsewhere, "the claim is placed in cluster %q, but its data source, %s, is now in cluster %q. Delete this claim and create it again",
		placed, s.Of, at.ClusterID)
}

func (s *CopySource) notReadyLocation(format string, args ...any) CopyLocation {
	return CopyLocation{Refusal: mirror.NewRefusal(v1alpha1.ReasonSourceNotReady, "the claim waits for its data source, %s: that %s %s", s.Of, s.sourceNoun(), fmt.Sprintf(format, args...))}
}

func (s *CopySource) goneRefusal(what string) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonSourceGone, "the data source of the claim, %s, %s: Xylem does not use another source. Delete this claim and create it again from a source that exists", s.Of, what)
}

func (s *CopySource) sourceNoun() string {
	if s.Of.IsSnapshot() {
		return "snapshot"
	}
	return "claim"
}

func driverOfVolume(pv *corev1.PersistentVolume) string {
	driver, _ := mirror.VolumeSourceOf(pv)
	return driver
}

// sourceObstacle returns why the member cannot create a volume from the given kind of source, or nil.
func (m Member) sourceObstacle(source *mirror.DataSource) *Obstacle {
	switch {
	case source == nil:
		return nil
	case source.Namespace != "":
		return obstacleOf((&CopySource{Of: *source}).Locate(&corev1.PersistentVolumeClaim{}).Refusal)
	case source.IsInOneMember(), slices.Contains(m.Rules.sources, source.KindWithGroup()):
		return nil
	}
	return &Obstacle{Reason: v1alpha1.ReasonDataSourceUnsupported, Cause: fmt.Sprintf("the data source of the claim is %s, but ClusterRegistration %q does not list that kind", source, m.Registration), WholeSentence: true,
		Remedy: "Use a claim or a snapshot as the data source, or ask an admin to list the kind in spec.storage.dataSources"}
}
