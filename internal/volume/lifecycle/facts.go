package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/states"
	"github.com/xylem-io/xylem/internal/volume"
)

// fact is a condition of a row.
type fact = states.Fact[volume.Observed]

func newFact(text, opposite string, is func(*volume.Observed) bool) fact {
	return states.NewFact(text, opposite, is)
}

var (
	not    = states.NegateFact[volume.Observed]
	either = states.AnyFact[volume.Observed]
)

// Facts about the host PV.
var (
	twoHostPVsRepresentIt         = newFact("two host PVs represent it", "", func(s *volume.Observed) bool { return s.TwinHost != nil })
	hasHostVolume                 = newFact("it is mirrored", "it is not mirrored", func(s *volume.Observed) bool { return s.Host != nil })
	hostPVRepresentsEarlierLeafPV = newFact("a host PV represents an earlier leaf PV with the same name", "no host PV represents an earlier leaf PV with the same name", func(s *volume.Observed) bool { return len(s.EarlierHosts) > 0 })
	mayHaveCopiesElsewhere        = newFact("other members may have copies of it", "no other member has a copy of it", func(s *volume.Observed) bool { return s.Host != nil && len(hostpv.MembersWithCopies(s.Host)) > 0 })
	clonesArePending              = newFact("claims are still to be cloned from it", "", func(s *volume.Observed) bool { return len(s.Needs) > 0 })
	abandonedByAdmin              = newFact("an admin has annotated the host PV with "+v1alpha1.AnnotationAbandon, "it is not abandoned", func(s *volume.Observed) bool { return s.Host != nil && hostpv.IsAbandonedVolume(s.Host) })
	hostPVHasFinalizer            = newFact("the host PV has Xylem's finalizer", "the host PV lacks Xylem's finalizer", func(s *volume.Observed) bool { return s.HasXylemFinalizer() })
	hostPVTerminating             = newFact("the host PV is terminating", "the host PV is not terminating", func(s *volume.Observed) bool { return isTerminating(s.Host) })
	hostPVEnded                   = newFact("the host PV has ended", "the host PV has not ended", func(s *volume.Observed) bool { return s.Host != nil && hostpv.IsReleasedOrFailed(s.Host) })
	hostPVHasNoClaimRef           = newFact("the host PV has no claimRef", "the host PV has a claimRef", func(s *volume.Observed) bool { return s.Host.Spec.ClaimRef == nil })
	hostPVFree                    = newFact("the host PV is free", "the host PV is not free", func(s *volume.Observed) bool { return hostpv.IsAvailableVolume(s.Host) })
	hostPVFreedForAnotherClaim    = newFact("the host PV was freed for another claim", "the host PV was not freed", func(s *volume.Observed) bool { return s.FreedByAdmin() })
	rootBoundToIt                 = newFact("the root claim is bound to it", "the root claim is not bound to it", func(s *volume.Observed) bool { return s.BoundToRoot() })

	mustBeDestroyed = newFact("it must be destroyed", "it must be kept", func(s *volume.Observed) bool { return s.MustBeDestroyed() })
	policyRetainsIt = newFact("the host PV or the member retains it", "neither the host PV nor the member retains it", func(s *volume.Observed) bool {
		return s.Host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || s.OriginalReclaimPolicy() != corev1.PersistentVolumeReclaimDelete
	})
	policyIsRecycle = newFact("the host PV's policy is Recycle", "the host PV's policy is not Recycle", func(s *volume.Observed) bool {
		policy := s.Host.Spec.PersistentVolumeReclaimPolicy
		return policy != corev1.PersistentVolumeReclaimDelete && policy != corev1.PersistentVolumeReclaimRetain
	})
	hostPVOutdated     = newFact("the host PV is not up to date", "", func(s *volume.Observed) bool { return volume.HostVolumeOutdated(s) })
	lastClaimMayBeLost = newFact("another claim used it last, the host may have lost that claim in a restore, and the host PV lacks policy Retain", "", func(s *volume.Observed) bool { return volume.MustRetainForLostClaim(s) })
	hostPVUnguarded    = newFact("the host PV lacks Xylem's finalizer, or lacks policy Retain although the volume must be retained", "", func(s *volume.Observed) bool { return volume.HostVolumeUnguarded(s) })
)

// Facts about host PVs that admins created.
var (
	importMayAdoptIt     = newFact("an admin's host PV requests it and may adopt it", "", func(s *volume.Observed) bool { return volume.ImportAllowed(s) })
	rootBoundToImport    = newFact("the root claim is bound to an admin's host PV that Xylem has not recorded", "", func(s *volume.Observed) bool { return s.RootBoundToImport() })
	importNotStampedYet  = newFact("an admin's host PV represents it, it is stamped neither for that PV nor for a claim, and no leaf claim of this host names it", "", func(s *volume.Observed) bool { return s.ImportNotTaken() })
	adoptedButNeverUsed  = newFact("both policies are Delete, and it was adopted, but no claim in the host has used it", "", func(s *volume.Observed) bool { return s.KeptNeverUsed() })
	memberAdminConsented = newFact("the member's admin has consented, and no claim in the member is, or will be, bound to it", "", func(s *volume.Observed) bool { return volume.ReportImportNotTaken(s) == nil })
)

// Facts about promises.
var (
	promiseMovable               = newFact("it is a Bound promise that has no disk, or whose disk is released when no Pod uses it", "", func(s *volume.Observed) bool { return hostpv.IsMovablePromise(s.Host) })
	promiseHasNoMember           = newFact("it is a promise that is not assigned to a member", "it is not a promise, or is assigned to a member", func(s *volume.Observed) bool { return s.Host != nil && hostpv.IsUnassignedPromise(s.Host) })
	promiseSuperseded            = newFact("its claim will not be bound to it", "", func(s *volume.Observed) bool { return s.PromiseSuperseded() })
	promiseHasNoDisk             = newFact("it is a promise without a disk", "", func(s *volume.Observed) bool { return s.Host != nil && hostpv.IsUnfulfilledPromise(s.Host) })
	rootAwaitsPromise            = newFact("the root claim is, or will be, bound to a promise without a disk", "the root claim neither is nor will be bound to a promise without a disk", func(s *volume.Observed) bool { return s.AwaitsPromisedDisk() })
	promiseAssignedHere          = newFact("its promise is assigned to this member and not abandoned", "its promise is not assigned to this member, or is abandoned", func(s *volume.Observed) bool { return s.PromiseAssignedHere() })
	diskReleasedWhenUnused       = newFact("it is a Bound promise, and its disk is released when no Pod uses it", "", func(s *volume.Observed) bool { return s.ReleasedWhenUnused() })
	markedAsReleasing            = newFact("it is marked as being released", "it is not marked as being released", func(s *volume.Observed) bool { return s.Host != nil && hostpv.IsReleasingDisk(s.Host) })
	markedAsUnused               = newFact("it is marked as unused", "", func(s *volume.Observed) bool { return hostpv.IsMarkedUnused(s.Host) })
	markedAsUnusedSinceValidTime = newFact("it is marked as unused since a valid time", "it is not marked as unused since a valid time", func(s *volume.Observed) bool { return s.PromiseUnusedSince() != nil })
	marksMayPredateRestore       = newFact("its marks may be older than a restore of the host", "", func(s *volume.Observed) bool { return s.Unused.MarkOutdated })
	podsListedSinceMark          = newFact("this process has listed its Pods since it was marked", "this process has not listed its Pods since it was marked", func(s *volume.Observed) bool { return s.Unused.PodsListed })
	gracePeriodOver              = newFact("the grace period is over", "the grace period is not over", func(s *volume.Observed) bool { return s.Unused.Duration >= s.Unused.GracePeriod })
	copyStillToBeCreated         = newFact("a snapshot or a clone of it is still to be created", "", (*volume.Observed).AwaitsSnapshotOrClone)
	usedOrStillNeeded            = newFact("a Pod uses it, or somebody else needs its data", "neither a Pod uses it, nor does anybody else need its data", func(s *volume.Observed) bool { return len(s.PromiseUsers) > 0 || s.AwaitsSnapshotOrClone() })
	podHasUsedIt                 = newFact("a Pod has used it", "", func(s *volume.Observed) bool { return s.Host.Annotations[v1alpha1.AnnotationConsumer] != "" })
)

// Facts about the leaf PV.
var (
	relatedToThisHost     = newFact("the leaf PV is stamped, or a leaf claim of this host names it", "", func(s *volume.Observed) bool { return s.RelatedToHost() })
	hasLeafPV             = newFact("it has a leaf PV", "it has no leaf PV", func(s *volume.Observed) bool { return s.Leaf != nil })
	otherLeafPVHasItsName = newFact("another leaf PV has its name", "no other leaf PV has its name", func(s *volume.Observed) bool { return s.Recreated != nil })
	leafPVStamped         = newFact("the leaf PV is stamped", "the leaf PV is not stamped", func(s *volume.Observed) bool { return s.LeafStamped })
	leafPVPolicyDelete    = newFact("the leaf PV's policy is Delete", "the leaf PV's policy is not Delete", func(s *volume.Observed) bool {
		return s.Leaf != nil && s.Leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	})
	leafPVRetainedOrGone    = newFact("the leaf PV is retained or gone", "the leaf PV is not retained", func(s *volume.Observed) bool { return proof.IsLeafRetained(s.Leaf) })
	leafPVTerminating       = newFact("the leaf PV is terminating", "the leaf PV is not terminating", func(s *volume.Observed) bool { return s.Leaf != nil && isTerminating(s.Leaf) })
	leafPVBound             = newFact("the leaf PV is Bound", "the leaf PV is not Bound", func(s *volume.Observed) bool { return s.Leaf != nil && s.Leaf.Status.Phase == corev1.VolumeBound })
	leafClaimAndLeafPVBound = newFact("the leaf claim and the leaf PV are Bound to each other", "the leaf claim and the leaf PV are not Bound to each other", func(s *volume.Observed) bool {
		return s.HeldByLeafClaim() && s.Leaf.Status.Phase == corev1.VolumeBound && s.LeafClaim.Status.Phase == corev1.ClaimBound
	})
	leafPVNotStampedAndRetained = newFact("the leaf PV is not both stamped and retained", "", func(s *volume.Observed) bool { return volume.StampedLeafVolume(s) != nil })
	leafPVNotSecured            = newFact("the leaf PV is not secured", "", func(s *volume.Observed) bool { return s.Leaf != nil && volume.SecuredLeafVolume(s) != nil })
	mayHaveBeenMirrored         = newFact("the member retains it, or the member's admin consented to its adoption, or it may have been mirrored, or the host may have lost its claim in a restore", "the member does not retain it, the member's admin did not consent to its adoption, it was never mirrored, and the host did not lose its claim in a restore", func(s *volume.Observed) bool { return s.MayBeMirrored() })
	successorMayAdoptIt         = newFact("a claim requests it and may adopt it", "", func(s *volume.Observed) bool { return s.AdoptableBySuccessor() })
	leafClaimMayBeDeleted       = newFact("it must be destroyed, or outlives the leaf claim", "", func(s *volume.Observed) bool { return s.MayDeleteLeafClaim() })
)

// Facts about the leaf claim.
var (
	hasLeafClaim            = newFact("it has a leaf claim", "it has no leaf claim", func(s *volume.Observed) bool { return s.LeafClaim != nil })
	earlierLeafClaimHasName = newFact("the leaf claim of an earlier root with the same name still exists", "", func(s *volume.Observed) bool { return s.NameOccupiedBy != nil })
	leafClaimNamesIt        = newFact("the leaf claim names it", "no leaf claim names it", func(s *volume.Observed) bool { return s.NamedByLeafClaim() })
	leafClaimTerminating    = newFact("the leaf claim is terminating", "the leaf claim is not terminating", func(s *volume.Observed) bool { return s.LeafClaim != nil && isTerminating(s.LeafClaim) })
	leafClaimNamesNoVolume  = newFact("the leaf claim names no volume", "the leaf claim names a volume", func(s *volume.Observed) bool { return s.LeafClaim != nil && s.LeafClaim.Spec.VolumeName == "" })
	leafClaimBound          = newFact("the leaf claim is Bound", "the leaf claim is not Bound", func(s *volume.Observed) bool { return s.LeafClaim.Status.Phase == corev1.ClaimBound })
	leafClaimLostItsVolume  = newFact("the leaf claim is Lost, and its PV is gone or does not name it", "", func(s *volume.Observed) bool {
		return s.LeafClaim.Status.Phase == corev1.ClaimLost && !hostpv.ClaimRefHasUIDOf(s.Placement.ProvisionedVolume, s.LeafClaim)
	})
	leafClaimLost         = newFact("the leaf claim is Lost", "", func(s *volume.Observed) bool { return s.LeafClaim.Status.Phase == corev1.ClaimLost })
	leafClaimHoldsIt      = newFact("the leaf claim is bound to it", "the leaf claim is not bound to it", func(s *volume.Observed) bool { return s.HeldByLeafClaim() })
	otherLeafClaimHoldsIt = newFact("another root's leaf claim is bound to it", "", func(s *volume.Observed) bool { return s.Holder != nil })
	otherLeafClaimHasRoot = newFact("the root of that leaf claim exists", "the root of that leaf claim is gone", func(s *volume.Observed) bool { return s.HolderRoot != nil })
	staleLeafClaimHoldsIt = newFact("the leaf claim of a deleted root is bound to it", "", func(s *volume.Observed) bool {
		claim := s.StaleLeafClaim()
		return s.LeftoverClaim == nil && claim != nil && !isTerminating(claim) && (s.Holder != nil || s.HostClaimRefUID() == "")
	})
	outlivesLeftOverClaim    = newFact("the leaf PV outlives that leaf claim", "", func(s *volume.Observed) bool { return proof.OutlivesClaim(s.Leaf, s.LeftoverClaim) })
	leftOverClaimNamesIt     = newFact("another leaf claim, whose root is gone, names it", "", func(s *volume.Observed) bool { return s.LeftoverClaim != nil })
	leftOverClaimTerminating = newFact("that leaf claim is terminating", "that leaf claim is not terminating", func(s *volume.Observed) bool { return isTerminating(s.LeftoverClaim) })
	leafPVNamesOtherClaim    = newFact("the leaf PV's claimRef names another claim", "", func(s *volume.Observed) bool {
		ref := s.Leaf.Spec.ClaimRef
		return ref != nil && ref.UID != "" && ref.UID != s.LeafClaim.UID
	})
	leafPVNamesLeafClaim   = newFact("the leaf PV's claimRef names the leaf claim", "", func(s *volume.Observed) bool { return hostpv.ClaimRefNamesClaim(s.Leaf, s.LeafClaim) })
	leafClaimNotBoundAgain = newFact("the member's PV controller has not bound the leaf claim to it again", "", func(s *volume.Observed) bool {
		return s.HeldByLeafClaim() && s.LeafClaim.Status.Phase == corev1.ClaimPending && s.LeafClaim.Annotations[v1alpha1.AnnotationVolumeUID] != string(s.Leaf.UID)
	})
	successorRequestsIt = newFact("a new claim requests it", "", func(s *volume.Observed) bool { return s.RequestedBySuccessor() })
)

// Facts about the root claim.
var (
	hasRootClaim               = newFact("it has a root claim", "it has no root claim", func(s *volume.Observed) bool { return s.Root != nil })
	rootTerminating            = newFact("the root claim is terminating", "the root claim is not terminating", func(s *volume.Observed) bool { return isTerminating(s.Root) })
	rootWillBeBoundToIt        = newFact("the root claim is, or will be, bound to it", "the root claim neither is nor will be bound to it", func(s *volume.Observed) bool { return s.BelongsToRoot() })
	rootPlaced                 = newFact("the root claim is placed", "the root claim is not placed", func(s *volume.Observed) bool { return s.PlacedClusterID() != "" })
	rootPlacedHere             = newFact("the root claim is placed in this member", "the root claim is placed in another member", func(s *volume.Observed) bool { return s.PlacedClusterID() == s.Member.ClusterID })
	rootHasHostPVOfOtherLeafPV = newFact("the root claim's host PV represents another leaf PV with the same name", "", func(s *volume.Observed) bool { return volume.ReportMistakenHostVolume(s) != nil })
	rootPlacedOrBoundElsewhere = newFact("the root claim is placed in another member, or names another volume", "", func(s *volume.Observed) bool { return s.WhyNotOwnedByRoot() != "" })
	rootPlacedElsewhere        = newFact("the root claim is placed in another member", "", func(s *volume.Observed) bool {
		return s.PlacedClusterID() != "" && s.PlacedClusterID() != s.Member.ClusterID
	})
	rootSetToLost           = newFact("Kubernetes has set the root claim to Lost", "Kubernetes has not set the root claim to Lost", func(s *volume.Observed) bool { return s.Root.Status.Phase == corev1.ClaimLost })
	rootRequestsMoreStorage = newFact("the root claim requests more storage, or cancels a failed expansion", "", func(s *volume.Observed) bool {
		_, grown := pvc.LeafStorageRequest(s.Root, s.LeafClaim)
		return grown
	})
	attributesClassChanged = newFact("the root claim names another VolumeAttributesClass", "", func(s *volume.Observed) bool {
		return pvc.AttributesClassChangeOf(s.Root, s.LeafClaim) == pvc.AttributesChange
	})
	attributesClassRemoved = newFact("the root claim names no VolumeAttributesClass, but the member has applied one", "", func(s *volume.Observed) bool {
		return pvc.AttributesClassChangeOf(s.Root, s.LeafClaim) == pvc.AttributesFixed
	})
)

func isTerminating(obj metav1.Object) bool { return obj.GetDeletionTimestamp() != nil }

// Facts about a claim without a volume in the member.
var (
	hasNoVolumeHere            = newFact("a claim without a volume in this member", "", (*volume.Observed).ClaimWithoutVolume)
	rootNamesVolume            = newFact("it names a volume", "it names no volume", func(s *volume.Observed) bool { return s.Root.Spec.VolumeName != "" })
	memberSelected             = newFact("this member is selected", "this member is not selected", (*volume.Observed).MemberSelected)
	schedulerAgrees            = newFact("the scheduler agrees, if recovery selected this member", "recovery selected this member, but the scheduler has not agreed yet", (*volume.Observed).SchedulerAgrees)
	classBelongsToXylem        = newFact("the class belongs to Xylem", "the class does not belong to Xylem", func(s *volume.Observed) bool { return hostpv.IsXylemClass(s.Class) })
	classMirrorsAndWaits       = newFact("the class is in mirror mode and waits for a consumer", "the class is not in mirror mode, or binds immediately", (*volume.Observed).ClassMirrorsAndWaits)
	rootBoundOutsideMember     = newFact("it is bound to a volume outside this member", "the volume that it names is not observed", func(s *volume.Observed) bool { return s.Placement.BoundOutsideMember })
	rootNamesMirrorOfLeafClaim = newFact("it names the host PV of its leaf claim's volume", "", (*volume.Observed).NamesMirrorOfLeaf)
	mirrorTerminating          = newFact("its host PV is terminating", "", func(s *volume.Observed) bool { return volumeTerminating(s.Placement.UnboundMirror) })
	mirrorNamesOtherClaim      = newFact("the claimRef of its host PV does not name the root claim", "", func(s *volume.Observed) bool { return s.Placement.Diverted != nil })
	rootClaimUnbound           = newFact("Kubernetes has not bound the root claim", "", func(s *volume.Observed) bool {
		return !metav1.HasAnnotation(s.Root.ObjectMeta, volumehelpers.AnnBindCompleted)
	})
	namedHostPVGone           = newFact("the PV that it names does not exist", "", func(s *volume.Observed) bool { return s.Placement.NamedHostGone })
	hostRestoreUnconfirmed    = newFact("the restore of the host is unconfirmed", "", func(s *volume.Observed) bool { return s.Placement.HostRestoreUnconfirmed })
	placementConfirmed        = newFact("an admin allows the use of the leaf claim's volume, or the leaf claim predates the confirmed restore of the host", "", (*volume.Observed).PlacementConfirmed)
	mayHaveLeafClaimElsewhere = newFact("it is older than a restore of the host, and another member has a leaf claim for it, or cannot be queried", "", func(s *volume.Observed) bool {
		return s.PlacementMayBeForgotten() && s.Placement.Counterparts.MayExist()
	})
	memberRefusesClass = newFact("the member refuses its class, or is being deregistered", "", func(s *volume.Observed) bool {
		return s.Member.Leaving && s.LeafClaimAnswer().Refusal != nil || s.LeafClaimAnswer().RefusedByClass()
	})
	memberRefusesLeafClaim = newFact("the member refuses a leaf claim for it", "the member does not refuse a leaf claim for it", func(s *volume.Observed) bool { return volume.ReportLeafClaimRefused(s) != nil })
	memberHasNamespace     = newFact("the member has the root claim's namespace", "the member lacks the root claim's namespace", func(s *volume.Observed) bool { return s.Placement == nil || !s.LeafClaimAnswer().MustWait })

	provisionedVolumeGone = newFact("the leaf claim was created for a volume that is gone", "", func(s *volume.Observed) bool {
		return s.LeafClaim != nil && s.Placement.ProvisionedVolume == nil && !metav1.HasAnnotation(s.LeafClaim.ObjectMeta, volumehelpers.AnnBindCompleted)
	})
	provisionedVolumeTerminating = newFact("the leaf PV is terminating", "the leaf PV is not terminating", func(s *volume.Observed) bool { return volumeTerminating(s.Placement.ProvisionedVolume) })

	requestedLeafPVIsHere           = newFact("the member has the leaf PV, and no host PV represents the leaf PV or has its name", "a host PV represents the leaf PV, or has its name", func(s *volume.Observed) bool { return s.Placement == nil || s.Placement.RequestedVolume != nil })
	requestedLeafPVInUse            = newFact("a claim in the member with the root claim's name is, or was, bound to the leaf PV", "", (*volume.Observed).RequestedVolumeInUse)
	otherMembersHaveRequestedVolume = newFact("other members also have a volume that the claim requests", "", func(s *volume.Observed) bool { return s.Placement != nil && len(s.Placement.RivalMembers) > 0 })
	adoptionRefused                 = newFact("the claim may not adopt the volume", "", func(s *volume.Observed) bool { return s.ReportUnadoptable() != nil })
)

// Facts about the data source of a claim that has no volume in the member.
var (
	dataSourceIsPlaced    = newFact("a claim or a snapshot is its data source", "neither a claim nor a snapshot is its data source", (*volume.Observed).PinnedBySource)
	dataSourceNotHere     = newFact("its data source is not in this member, or not ready", "", (*volume.Observed).SourceNotReadyHere)
	dataSourceRefused     = newFact("the member cannot create it from its data source", "", func(s *volume.Observed) bool { return volume.ReportSourceRefused(s) != nil })
	dataSourceGone        = newFact("its data source is gone from the member", "", (*volume.Observed).SourceGoneOrReplaced)
	dataSourceDiffers     = newFact("the leaf claim was not created from the root claim's data source", "", (*volume.Observed).DataSourceDiffers)
	noPodToSchedule       = newFact("the leaf claim's class waits for a consumer, and no Pod of the claim is to be scheduled", "", func(s *volume.Observed) bool { return s.Placement.Attempt.LacksConsumer })
	podNeedsDataElsewhere = newFact("its Pod uses another claim, whose data source is not in this member", "", (*volume.Observed).PodNeedsOtherMember)
	dataSourceNotRecorded = newFact("the location of its data source is not recorded", "", (*volume.Observed).SourceUnrecorded)
)

// Facts about a claim that is, or will be, bound to a promise without a disk.
var (
	noMemberObserved     = newFact("it has no PersistentVolume, and no member is observed", "", (*volume.Observed).MemberNotObserved)
	lostRootNamesPromise = newFact("Kubernetes has set it to Lost, and it names a promise", "", func(s *volume.Observed) bool {
		return s.Root.Status.Phase == corev1.ClaimLost && hostpv.IsPromiseName(s.Root.Spec.VolumeName)
	})
	classInPromiseMode            = newFact("the class belongs to Xylem and is in promise mode", "the class does not belong to Xylem, or is not in promise mode", func(s *volume.Observed) bool { return hostpv.IsXylemClass(s.Class) && hostpv.IsPromiseClass(s.Class) })
	promiseImpossible             = newFact("Xylem cannot create a promise for it", "", func(s *volume.Observed) bool { return hostpv.PromiseRefusal(s.Root, s.Class) != nil })
	rootBoundToPromiseWithoutDisk = newFact("it is bound to a promise without a disk", "it is not bound to a promise without a disk", func(s *volume.Observed) bool { return s.Promise != nil })
	promiseGone                   = newFact("its promise is gone", "it names no promise that is gone", func(s *volume.Observed) bool { return s.PromiseLost })
	rootNamesOwnPromise           = newFact("it names its own promise", "it does not name its own promise", (*volume.Observed).NamesOwnPromise)
	promiseLabeledHere            = newFact("the promise is labeled for this member", "the promise is not labeled for this member", func(s *volume.Observed) bool { return s.PromiseClusterID() == s.Member.ClusterID })
	promiseLabeledElsewhere       = newFact("the promise is labeled for another member", "", func(s *volume.Observed) bool {
		return s.PromiseClusterID() != "" && s.PromiseClusterID() != s.Member.ClusterID
	})
	podUsesItHere      = newFact("a Pod in this member uses it", "no Pod in this member uses it", func(s *volume.Observed) bool { return len(s.Placement.PromisePods) > 0 })
	promiseAbandoned   = newFact("an admin has annotated the promise with "+v1alpha1.AnnotationAbandon, "", func(s *volume.Observed) bool { return hostpv.IsAbandonedVolume(s.Promise) })
	promiseTerminating = newFact("the promise is terminating", "", func(s *volume.Observed) bool { return volumeTerminating(s.Promise) })
	memberKeepsPromise = newFact("it has a leaf claim, and no admin has released its promise from this member", "", (*volume.Observed).MustKeepPromise)
)

// volumeTerminating reports whether a PV is being deleted. Kubernetes keeps the PV while it is Bound,
// but the PV controller does not bind another claim to it.
func volumeTerminating(pv *corev1.PersistentVolume) bool {
	return pv != nil && pv.DeletionTimestamp != nil
}
