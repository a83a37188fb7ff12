package volume

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/placement"
	"github.com/xylem-io/xylem/internal/proof"
)

// Observed is one volume, with all related objects in the host and in one member, or a claim without a
// volume in the member. Its fields do not depend on the object that a request names: package observe fills
// all of them for each request. A nil field means that the object does not exist.
type Observed struct {
	Member mirror.Member
	// Name and UID are those of the leaf PV, from Host or Leaf. If Name is empty, the observation
	// is of a claim without a volume in the member.
	Name string
	UID  types.UID

	// Host is the host PV that represents the volume. Earlier lists the host PVs that represent a
	// leaf PV with the same name but a different UID. It is set only if Host is nil.
	Host         *corev1.PersistentVolume
	EarlierHosts []corev1.PersistentVolume
	// TwinHost is another host PV, not created by Xylem, that represents the same volume.
	TwinHost *corev1.PersistentVolume

	// Imports are the admins' host PVs that request the volume and that Xylem has not recorded. If the
	// observation is of a claim that is bound to one of them, Host is nil, and TakingHost is the host PV that
	// represents the volume.
	Imports    []corev1.PersistentVolume
	TakingHost *corev1.PersistentVolume
	// ImportClass is the host class of the first import.
	ImportClass *storagev1.StorageClass

	// Leaf is the member's PV with that name and UID. Recreated is the member's PV with the same
	// name but a different UID. It is set only if Leaf is nil.
	Leaf, Recreated *corev1.PersistentVolume
	// Stamp is Leaf's stamp, if LeafStamped is set. StampRoot is the claim that it names, or nil if that claim
	// was deleted.
	Stamp       mirror.Origin
	LeafStamped bool
	StampRoot   *corev1.PersistentVolumeClaim

	// Root is the host's claim that the volume belongs to: Host's claim or, if Host is nil, the root
	// of the leaf claim or the leaf PV. Successor is the host's claim with the same namespace and name
	// but a different UID. It is set only if Root is nil.
	Root, Successor *corev1.PersistentVolumeClaim
	// LeafClaim is the root's leaf claim. Origin is Claim's stamp or, if Claim is nil, Leaf's.
	LeafClaim *corev1.PersistentVolumeClaim
	Origin    mirror.Origin
	// NameOccupiedBy is a leaf claim that belongs to an earlier root with the name of the host PV's claim,
	// so that no leaf claim can be created for that claim.
	NameOccupiedBy *corev1.PersistentVolumeClaim
	// Holder is another root's leaf claim that Leaf is bound to, if an admin freed Host for Root.
	// HolderRoot is that other root, or nil if it was deleted.
	Holder       *corev1.PersistentVolumeClaim
	HolderOrigin mirror.Origin
	HolderRoot   *corev1.PersistentVolumeClaim
	// LastClaimMayBeLost is set if the host may have lost the claim that used the volume last, when the host
	// was restored, and Xylem has not set the host PV to Retain for this reason before. The volume may
	// have newer data than the host knows.
	LastClaimMayBeLost bool
	// LeftoverClaim is a leaf claim that names the volume, is neither Claim nor Holder, and whose root is
	// gone. Only the observation of that leaf claim contains LeftoverClaim.
	LeftoverClaim *corev1.PersistentVolumeClaim

	// SourceNameReused reports whether the member's object with the name of the root's data source is not the
	// one from which the leaf claim was created.
	SourceNameReused bool

	// Promise is the root's promise, fulfilled or not. It is set only if Host is nil. PromiseLost
	// reports whether the root is bound to a promise that no longer exists.
	Promise     *corev1.PersistentVolume
	PromiseLost bool
	// PlainNameTaken and SuffixedNameTaken report whether another host PV has the name that Host would have,
	// without or with the suffix.
	PlainNameTaken, SuffixedNameTaken bool
	// PromiseUsers are the Pods that need the disk of a promise that is released with its last Pod. Unused
	// describes how long such a promise has had no PromiseUsers.
	PromiseUsers []corev1.Pod
	Unused       Unused
	// MayBeRestored is set if the leaf claim may come from a backup of the member. RootMayBeLost is set if the
	// leaf claim has no root, and the host may have lost it when the host was restored.
	MayBeRestored, RootMayBeLost bool

	// PlacedRegistration is the registration of the other member that the root, or its successor, is placed
	// in, if any.
	PlacedRegistration string

	// Needs names the claims that are to be cloned from a volume that may have to be destroyed, or whose
	// leaf claim may have to be deleted.
	Needs []string
	// Copies names the other members that may have copies of a shared volume.
	Copies []string

	// Rules are the placement rules of the member's registration. Class is the class of the root, or of its
	// successor, in the host. Tenant is the UID of its namespace. Tenant is empty unless the member has
	// the volume.
	Rules  placement.Rules
	Class  *storagev1.StorageClass
	Tenant types.UID
	// Placement is the state of the root, or of its successor, in the member. It is nil if no member is
	// observed: the controllers promise and host_volume observe only the host.
	Placement *Placement
}

// Unused describes how long no Pod has used a promise.
type Unused struct {
	// PodsListed is set if this process has listed the Pods since the promise was marked.
	PodsListed bool
	// Duration is the time since the mark. Grace is how long Xylem waits until it releases the disk.
	Duration, GracePeriod time.Duration
	// MarkOutdated is set if the promise is marked as being released, and the mark may come from a backup
	// of the host: since then, Pods that the host has lost may have written to the disk.
	MarkOutdated bool
	// Unreadable is why the promise's class, which contains GracePeriod, cannot be read, or nil.
	Unreadable error
}

// PromiseUnusedSince returns when a promise was marked as unused, or nil. It ignores a value that does
// not parse, because Xylem did not write it.
func (s *Observed) PromiseUnusedSince() *time.Time {
	at, err := time.Parse(time.RFC3339, s.Host.Annotations[v1alpha1.AnnotationUnusedSince])
	if err != nil {
		return nil
	}
	return &at
}

// NamedByLeafClaim reports whether a leaf claim of this host names the volume.
func (s *Observed) NamedByLeafClaim() bool {
	return s.LeafClaim != nil && s.Name != "" && s.LeafClaim.Spec.VolumeName == s.Name
}

// HeldByLeafClaim reports whether the leaf PV and its leaf claim refer to each other.
func (s *Observed) HeldByLeafClaim() bool {
	return s.NamedByLeafClaim() && hostpv.ClaimRefHasUIDOf(s.Leaf, s.LeafClaim)
}

// RelatedToHost reports whether the leaf PV is related to this host.
func (s *Observed) RelatedToHost() bool {
	return s.Leaf != nil && (s.NamedByLeafClaim() || s.Holder != nil || s.LeafStamped)
}

// StaleLeafClaim returns the leaf claim of a root that was deleted, or nil.
func (s *Observed) StaleLeafClaim() *corev1.PersistentVolumeClaim {
	switch {
	case s.LeftoverClaim != nil:
		return s.LeftoverClaim
	case s.Holder != nil && s.HolderRoot == nil:
		return s.Holder
	case s.Root == nil && s.LeafClaim != nil:
		return s.LeafClaim
	}
	return nil
}

// OriginalReclaimPolicy returns the leaf PV's original reclaim policy in the member.
func (s *Observed) OriginalReclaimPolicy() corev1.PersistentVolumeReclaimPolicy {
	return corev1.PersistentVolumeReclaimPolicy(s.Leaf.Annotations[v1alpha1.AnnotationReclaimPolicy])
}

// PlacedClusterID returns the cluster ID of the member where the root, or its successor, is placed.
func (s *Observed) PlacedClusterID() string {
	return s.RootOrSuccessor().Annotations[v1alpha1.AnnotationPlacedIn]
}

// HostClaimRefUID returns the UID of the claim in the host PV's claimRef, or "".
func (s *Observed) HostClaimRefUID() types.UID {
	if s.Host == nil || s.Host.Spec.ClaimRef == nil {
		return ""
	}
	return s.Host.Spec.ClaimRef.UID
}

// BelongsToRoot reports whether the root is, or is about to be, bound to exactly this volume, regardless of
// its recorded placement.
func (s *Observed) BelongsToRoot() bool {
	switch {
	case s.Host == nil:
		return false
	case s.Root.Spec.VolumeName == "":
		return s.HostClaimRefUID() == s.Root.UID
	}
	return s.Root.Spec.VolumeName == s.Host.Name
}

// BoundToRoot reports whether the root and the host PV are bound to each other.
func (s *Observed) BoundToRoot() bool {
	return s.Host != nil && s.Root != nil && s.Root.Spec.VolumeName == s.Host.Name && s.HostClaimRefUID() == s.Root.UID
}

// MustBeDestroyed reports whether the volume must be destroyed: the host PV's policy is Delete now, and
// the member's policy was Delete when the leaf PV was mirrored. A leaf PV without this host's stamp
// is not the mirrored one. A leaf PV with the stamp of another root is the mirrored one if no claim
// in the member is bound to it: an admin freed the host PV, and the next claim was deleted before
// the leaf PV referred to its leaf claim. Xylem keeps an adopted volume in the member if no claim
// in the host has used the volume, because only the stamp connects it to this host.
func (s *Observed) MustBeDestroyed() bool {
	if s.AdoptedNeverUsed() || s.Host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return false
	}
	return s.Leaf == nil || s.LeafStamped && s.OriginalReclaimPolicy() == corev1.PersistentVolumeReclaimDelete &&
		(!s.StampedForOtherRoot() || hostpv.IsReleasedOrFailed(s.Host) && s.Leaf.Status.Phase != corev1.VolumeBound)
}

// StampedForOtherRoot reports whether the leaf PV has the stamp of a root other than the host PV's
// claim.
func (s *Observed) StampedForOtherRoot() bool {
	return s.LeafStamped && s.Stamp.UID != s.HostClaimRefUID()
}

// LastOtherOrigin returns the root that used the volume last, if it is not the host PV's claim: the root of
// the leaf claim that is bound to the volume or, without such a leaf claim, the one in the leaf PV's
// stamp. It returns false if the host PV's claim used it last, or if no claim has used it.
func (s *Observed) LastOtherOrigin() (mirror.Origin, bool) {
	switch {
	case s.Host == nil:
		return mirror.Origin{}, false
	case s.Holder != nil:
		return s.HolderOrigin, true
	case s.HostClaimRefUID() == "" && s.HeldByLeafClaim():
		return s.Origin, true
	}
	return s.Stamp, s.StampedForOtherRoot() && !s.AdoptedNeverUsed()
}

// MayDeleteLeafClaim reports whether the leaf claim may be deleted: its volume must be destroyed too, or
// will outlive it.
func (s *Observed) MayDeleteLeafClaim() bool {
	if s.Recreated != nil {
		return proof.OutlivesClaim(s.Recreated, s.LeafClaim)
	}
	return s.MustBeDestroyed() || proof.IsLeafRetained(s.Leaf)
}

// MayBeMirrored reports whether the volume of a leaf claim without a root must outlive the leaf
// claim, although it has no stamp. Either the member retains it, the member's admin consented to
// its adoption, it may have been mirrored before the member was restored, or a restore may have
// removed its root from the host. In the last case, Pods may have written to it since.
func (s *Observed) MayBeMirrored() bool {
	if s.Leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain || hostpv.ConsentsToAdoption(s.Leaf, s.Member.HostID) {
		return true
	}
	return s.HeldByLeafClaim() && (s.Host != nil || len(s.EarlierHosts) > 0 || s.MayBeRestored || s.RootMayBeLost)
}

// FreedByAdmin reports whether an admin cleared the host PV's claimRef, so that another claim is, or may
// be, bound to the volume. root_pv may have set the leaf PV's policy to Delete before that.
func (s *Observed) FreedByAdmin() bool {
	if s.Host.Spec.ClaimRef == nil {
		return s.Host.Status.Phase == corev1.VolumeAvailable
	}
	return s.StampedForOtherRoot() && !hostpv.IsReleasedOrFailed(s.Host) && !hostpv.IsReleasingDisk(s.Host)
}

// PromiseAssignedHere reports whether the volume may fulfill a promise that is assigned to this member and
// that no admin has abandoned.
func (s *Observed) PromiseAssignedHere() bool {
	return s.Promise != nil && hostpv.IsUnfulfilledPromiseIn(s.Promise, s.Member.ClusterID) && !hostpv.IsAbandonedVolume(s.Promise)
}

// AwaitsPromisedDisk reports whether the root is, or will be, bound to its promise, and no other volume
// fulfills it. A promise that is missing is not in the cache yet, or was lost and will be
// re-created. After a restore of the host, a root may not be bound to its promise yet, or may not
// have one yet.
func (s *Observed) AwaitsPromisedDisk() bool {
	unbound := s.Root.Spec.VolumeName == ""
	if s.Promise == nil {
		return s.Host == nil && (s.PromiseLost || unbound && hostpv.IsXylemClass(s.Class) && s.Class.Parameters[v1alpha1.ParameterProvisioning] == v1alpha1.ProvisioningPromise || s.Root.Spec.VolumeName == hostpv.PromiseName(s.Root.UID))
	}
	return (unbound || s.Promise.Name == s.Root.Spec.VolumeName) && hostpv.IsUnfulfilledPromise(s.Promise)
}

// HostVolumeName returns the name that the host PV should have for a claim. If the claim names a volume,
// only that name is possible, so that a claim that lost its volume is bound to that volume again.
// It returns "" if that name is taken or does not fit the volume.
func (s *Observed) HostVolumeName(claim *corev1.PersistentVolumeClaim) string {
	plain := hostpv.HostVolumeName(s.Name, s.Member.ClusterID, false)
	suffixed := hostpv.HostVolumeName(s.Name, s.Member.ClusterID, true)
	switch named := claim.Spec.VolumeName; {
	case named == plain && !s.PlainNameTaken, named == suffixed && !s.SuffixedNameTaken:
		return named
	case named == "" && !s.PlainNameTaken:
		return plain
	case named == "":
		return suffixed
	}
	return ""
}

// AdoptableBySuccessor reports whether the claim that requests a released volume may adopt it. If the volume
// still has a leaf claim, root_pvc adopts both together.
func (s *Observed) AdoptableBySuccessor() bool {
	claim := s.Successor
	return claim != nil && s.Leaf != nil && hostpv.RequestsEarlierVolume(claim, s.Leaf, s.Member) && s.LeafClaim == nil && s.Leaf.Status.Phase == corev1.VolumeReleased &&
		hostpv.IsXylemClass(s.Class) &&
		claim.Annotations[v1alpha1.AnnotationPlacedIn] == s.Member.ClusterID && s.HostVolumeName(claim) == claim.Spec.VolumeName &&
		placement.Member{Member: s.Member, Rules: s.Rules}.RefuseAdoption(claim, s.Class, s.Tenant, s.Leaf, false) == nil
}

// ReleasedWhenUnused reports whether the host PV is a promise whose claim exists and whose disk is
// released with its last Pod.
func (s *Observed) ReleasedWhenUnused() bool {
	return s.Host != nil && s.Name != "" && hostpv.ReleasesWhenUnused(s.Host) && s.Host.Status.Phase == corev1.VolumeBound && s.Host.Spec.ClaimRef != nil
}

// AwaitsSnapshotOrClone reports whether a snapshot or a clone of the volume is still to be created.
func (s *Observed) AwaitsSnapshotOrClone() bool {
	return len(s.Needs) > 0 || mirrorsnapshot.HasPendingSnapshot(s.Root)
}

// HasXylemFinalizer reports whether the host PV has Xylem's finalizer.
func (s *Observed) HasXylemFinalizer() bool {
	return controllerutil.ContainsFinalizer(s.Host, v1alpha1.FinalizerLeafVolume)
}

func isTerminating(obj metav1.Object) bool { return obj.GetDeletionTimestamp() != nil }

// RepresentedBy reports whether a host PV is the mirror of the volume.
func (s *Observed) RepresentedBy(host *corev1.PersistentVolume) bool {
	cluster, _, uid, ours := hostpv.LeafOfHostVolume(host)
	return ours && cluster == s.Member.ClusterID && uid == s.UID
}
