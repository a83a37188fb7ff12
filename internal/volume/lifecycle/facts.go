package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/proof"
	"github.com/xylem-io/xylem/internal/states"
	"github.com/xylem-io/xylem/internal/volume"
	"github.com/xylem-io/xylem/internal/volume/desired"
	"github.com/xylem-io/xylem/internal/volume/problem"
)

// fact is a condition of a row.
type fact = states.Fact[volume.Observed]

func when(text, opposite string, is func(*volume.Observed) bool) fact {
	return states.If(text, opposite, is)
}

var (
	not    = states.Not[volume.Observed]
	either = states.Any[volume.Observed]
)

// Facts about the host PV.
var (
	twoHostPVsRepresentIt         = when("two host PVs represent it", "", func(s *volume.Observed) bool { return s.Twin != nil })
	mirrored                      = when("it is mirrored", "it is not mirrored", func(s *volume.Observed) bool { return s.Host != nil })
	hostPVRepresentsEarlierLeafPV = when("a host PV represents an earlier leaf PV with the same name", "no host PV represents an earlier leaf PV with the same name", func(s *volume.Observed) bool { return len(s.Earlier) > 0 })
	mayHaveCopiesElsewhere        = when("other members may have copies of it", "no other member has a copy of it", func(s *volume.Observed) bool { return s.Host != nil && len(hostpv.CopiedIn(s.Host)) > 0 })
	clonesArePending              = when("claims are still to be cloned from it", "", func(s *volume.Observed) bool { return len(s.Needs) > 0 })
	abandoned                     = when("an admin has annotated the host PV with "+v1alpha1.AnnotationAbandon, "it is not abandoned", func(s *volume.Observed) bool { return s.Host != nil && hostpv.Abandoned(s.Host) })
	hostPVHasFinalizer            = when("the host PV has Xylem's finalizer", "the host PV lacks Xylem's finalizer", func(s *volume.Observed) bool { return s.HasFinalizer() })
	hostPVTerminating             = when("the host PV is terminating", "the host PV is not terminating", func(s *volume.Observed) bool { return deleting(s.Host) })
	hostPVEnded                   = when("the host PV has ended", "the host PV has not ended", func(s *volume.Observed) bool { return s.Host != nil && hostpv.Ended(s.Host) })
	hostPVHasNoClaimRef           = when("the host PV has no claimRef", "the host PV has a claimRef", func(s *volume.Observed) bool { return s.Host.Spec.ClaimRef == nil })
	hostPVFree                    = when("the host PV is free", "the host PV is not free", func(s *volume.Observed) bool { return hostpv.Free(s.Host) })
	hostPVFreedForAnotherClaim    = when("the host PV was freed for another claim", "the host PV was not freed", func(s *volume.Observed) bool { return s.Freed() })
	rootBoundToIt                 = when("the root claim is bound to it", "the root claim is not bound to it", func(s *volume.Observed) bool { return s.Bound() })

	mustBeDestroyed = when("it must be destroyed", "it must be kept", func(s *volume.Observed) bool { return s.Destroys() })
	policyRetainsIt = when("the host PV or the member retains it", "neither the host PV nor the member retains it", func(s *volume.Observed) bool {
		return s.Host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || s.Policy() != corev1.PersistentVolumeReclaimDelete
	})
	policyIsRecycle = when("the host PV's policy is Recycle", "the host PV's policy is not Recycle", func(s *volume.Observed) bool {
		policy := s.Host.Spec.PersistentVolumeReclaimPolicy
		return policy != corev1.PersistentVolumeReclaimDelete && policy != corev1.PersistentVolumeReclaimRetain
	})
	hostPVOutdated     = when("the host PV is not up to date", "", func(s *volume.Observed) bool { return desired.Outdated(s) })
	lastClaimMayBeLost = when("another claim used it last, the host may have lost that claim in a restore, and the host PV lacks policy Retain", "", func(s *volume.Observed) bool { return desired.Rescues(s) })
	hostPVUnguarded    = when("the host PV lacks Xylem's finalizer, or lacks policy Retain although the volume must be retained", "", func(s *volume.Observed) bool { return desired.Unguarded(s) })
)

// Facts about host PVs that admins created.
var (
	importMayAdoptIt     = when("an admin's host PV requests it and may adopt it", "", func(s *volume.Observed) bool { return problem.Importable(s) })
	rootBoundToImport    = when("the root claim is bound to an admin's host PV that Xylem has not recorded", "", func(s *volume.Observed) bool { return s.BoundToImport() })
	importNotStampedYet  = when("an admin's host PV represents it, it is stamped neither for that PV nor for a claim, and no leaf claim of this host names it", "", func(s *volume.Observed) bool { return s.Untaken() })
	adoptedButNeverUsed  = when("both policies are Delete, and it was adopted, but no claim in the host has used it", "", func(s *volume.Observed) bool { return s.KeptUnused() })
	memberAdminConsented = when("the member's admin has consented, and no claim in the member is, or will be, bound to it", "", func(s *volume.Observed) bool { return problem.ReportUntaken(s) == nil })
)

// Facts about promises.
var (
	promiseMovable               = when("it is a Bound promise that has no disk, or whose disk is released when no Pod uses it", "", func(s *volume.Observed) bool { return hostpv.Movable(s.Host) })
	promiseHasNoMember           = when("it is a promise that is not assigned to a member", "it is not a promise, or is assigned to a member", func(s *volume.Observed) bool { return s.Host != nil && hostpv.IsUnused(s.Host) })
	promiseSuperseded            = when("its claim will not be bound to it", "", func(s *volume.Observed) bool { return s.Superseded() })
	promiseHasNoDisk             = when("it is a promise without a disk", "", func(s *volume.Observed) bool { return s.Host != nil && hostpv.IsUnfulfilled(s.Host) })
	rootAwaitsPromise            = when("the root claim is, or will be, bound to a promise without a disk", "the root claim neither is nor will be bound to a promise without a disk", func(s *volume.Observed) bool { return s.Promised() })
	promiseAssignedHere          = when("its promise is assigned to this member and not abandoned", "its promise is not assigned to this member, or is abandoned", func(s *volume.Observed) bool { return s.PromisedHere() })
	diskReleasedWhenUnused       = when("it is a Bound promise, and its disk is released when no Pod uses it", "", func(s *volume.Observed) bool { return s.Scratch() })
	markedAsReleasing            = when("it is marked as being released", "it is not marked as being released", func(s *volume.Observed) bool { return s.Host != nil && hostpv.Releasing(s.Host) })
	markedAsUnused               = when("it is marked as unused", "", func(s *volume.Observed) bool { return hostpv.MarkedUnused(s.Host) })
	markedAsUnusedSinceValidTime = when("it is marked as unused since a valid time", "it is not marked as unused since a valid time", func(s *volume.Observed) bool { return s.UnusedSince() != nil })
	marksMayPredateRestore       = when("its marks may be older than a restore of the host", "", func(s *volume.Observed) bool { return s.Unused.Outdated })
	podsListedSinceMark          = when("this process has listed its Pods since it was marked", "this process has not listed its Pods since it was marked", func(s *volume.Observed) bool { return s.Unused.Listed })
	gracePeriodOver              = when("the grace period is over", "the grace period is not over", func(s *volume.Observed) bool { return s.Unused.For >= s.Unused.Grace })
	copyStillToBeCreated         = when("a snapshot or a clone of it is still to be created", "", (*volume.Observed).Saved)
	usedOrStillNeeded            = when("a Pod uses it, or somebody else needs its data", "neither a Pod uses it, nor does anybody else need its data", func(s *volume.Observed) bool { return len(s.Users) > 0 || s.Saved() })
	podHasUsedIt                 = when("a Pod has used it", "", func(s *volume.Observed) bool { return s.Host.Annotations[v1alpha1.AnnotationConsumer] != "" })
)

// Facts about the leaf PV.
var (
	relatedToThisHost     = when("the leaf PV is stamped, or a leaf claim of this host names it", "", func(s *volume.Observed) bool { return s.Ours() })
	hasLeafPV             = when("it has a leaf PV", "it has no leaf PV", func(s *volume.Observed) bool { return s.Leaf != nil })
	otherLeafPVHasItsName = when("another leaf PV has its name", "no other leaf PV has its name", func(s *volume.Observed) bool { return s.Recreated != nil })
	leafPVStamped         = when("the leaf PV is stamped", "the leaf PV is not stamped", func(s *volume.Observed) bool { return s.Stamped })
	leafPVPolicyDelete    = when("the leaf PV's policy is Delete", "the leaf PV's policy is not Delete", func(s *volume.Observed) bool {
		return s.Leaf != nil && s.Leaf.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	})
	leafPVRetainedOrGone    = when("the leaf PV is retained or gone", "the leaf PV is not retained", func(s *volume.Observed) bool { return proof.Retained(s.Leaf) })
	leafPVTerminating       = when("the leaf PV is terminating", "the leaf PV is not terminating", func(s *volume.Observed) bool { return s.Leaf != nil && deleting(s.Leaf) })
	leafPVBound             = when("the leaf PV is Bound", "the leaf PV is not Bound", func(s *volume.Observed) bool { return s.Leaf != nil && s.Leaf.Status.Phase == corev1.VolumeBound })
	leafClaimAndLeafPVBound = when("the leaf claim and the leaf PV are Bound to each other", "the leaf claim and the leaf PV are not Bound to each other", func(s *volume.Observed) bool {
		return s.Held() && s.Leaf.Status.Phase == corev1.VolumeBound && s.Claim.Status.Phase == corev1.ClaimBound
	})
	leafPVNotStampedAndRetained = when("the leaf PV is not both stamped and retained", "", func(s *volume.Observed) bool { return desired.StampedLeaf(s) != nil })
	leafPVNotSecured            = when("the leaf PV is not secured", "", func(s *volume.Observed) bool { return s.Leaf != nil && desired.KeptLeaf(s) != nil })
	mayHaveBeenMirrored         = when("the member retains it, or the member's admin consented to its adoption, or it may have been mirrored, or the host may have lost its claim in a restore", "the member does not retain it, the member's admin did not consent to its adoption, it was never mirrored, and the host did not lose its claim in a restore", func(s *volume.Observed) bool { return s.MayBeMirrored() })
	successorMayAdoptIt         = when("a claim requests it and may adopt it", "", func(s *volume.Observed) bool { return s.Adoptable() })
	leafClaimMayBeDeleted       = when("it must be destroyed, or outlives the leaf claim", "", func(s *volume.Observed) bool { return s.MayDelete() })
)

// Facts about the leaf claim.
var (
	hasLeafClaim            = when("it has a leaf claim", "it has no leaf claim", func(s *volume.Observed) bool { return s.Claim != nil })
	earlierLeafClaimHasName = when("the leaf claim of an earlier root with the same name still exists", "", func(s *volume.Observed) bool { return s.NameOccupiedBy != nil })
	leafClaimNamesIt        = when("the leaf claim names it", "no leaf claim names it", func(s *volume.Observed) bool { return s.Claimed() })
	leafClaimTerminating    = when("the leaf claim is terminating", "the leaf claim is not terminating", func(s *volume.Observed) bool { return s.Claim != nil && deleting(s.Claim) })
	leafClaimNamesNoVolume  = when("the leaf claim names no volume", "the leaf claim names a volume", func(s *volume.Observed) bool { return s.Claim != nil && s.Claim.Spec.VolumeName == "" })
	leafClaimBound          = when("the leaf claim is Bound", "the leaf claim is not Bound", func(s *volume.Observed) bool { return s.Claim.Status.Phase == corev1.ClaimBound })
	leafClaimLostItsVolume  = when("the leaf claim is Lost, and its PV is gone or does not name it", "", func(s *volume.Observed) bool {
		return s.Claim.Status.Phase == corev1.ClaimLost && !hostpv.HeldBy(s.Placement.Provisioned, s.Claim)
	})
	leafClaimLost         = when("the leaf claim is Lost", "", func(s *volume.Observed) bool { return s.Claim.Status.Phase == corev1.ClaimLost })
	leafClaimHoldsIt      = when("the leaf claim is bound to it", "the leaf claim is not bound to it", func(s *volume.Observed) bool { return s.Held() })
	otherLeafClaimHoldsIt = when("another root's leaf claim is bound to it", "", func(s *volume.Observed) bool { return s.Holder != nil })
	otherLeafClaimHasRoot = when("the root of that leaf claim exists", "the root of that leaf claim is gone", func(s *volume.Observed) bool { return s.HolderRoot != nil })
	staleLeafClaimHoldsIt = when("the leaf claim of a deleted root is bound to it", "", func(s *volume.Observed) bool {
		claim := s.Stale()
		return s.Left == nil && claim != nil && !deleting(claim) && (s.Holder != nil || s.HostRoot() == "")
	})
	outlivesLeftOverClaim    = when("the leaf PV outlives that leaf claim", "", func(s *volume.Observed) bool { return proof.Outlives(s.Leaf, s.Left) })
	leftOverClaimNamesIt     = when("another leaf claim, whose root is gone, names it", "", func(s *volume.Observed) bool { return s.Left != nil })
	leftOverClaimTerminating = when("that leaf claim is terminating", "that leaf claim is not terminating", func(s *volume.Observed) bool { return deleting(s.Left) })
	leafPVNamesOtherClaim    = when("the leaf PV's claimRef names another claim", "", func(s *volume.Observed) bool {
		ref := s.Leaf.Spec.ClaimRef
		return ref != nil && ref.UID != "" && ref.UID != s.Claim.UID
	})
	leafPVNamesLeafClaim   = when("the leaf PV's claimRef names the leaf claim", "", func(s *volume.Observed) bool { return hostpv.PointsAt(s.Leaf, s.Claim) })
	leafClaimNotBoundAgain = when("the member's PV controller has not bound the leaf claim to it again", "", func(s *volume.Observed) bool {
		return s.Held() && s.Claim.Status.Phase == corev1.ClaimPending && s.Claim.Annotations[v1alpha1.AnnotationVolumeUID] != string(s.Leaf.UID)
	})
	successorRequestsIt = when("a new claim requests it", "", func(s *volume.Observed) bool { return s.AskedFor() })
)

// Facts about the root claim.
var (
	hasRoot                    = when("it has a root claim", "it has no root claim", func(s *volume.Observed) bool { return s.Root != nil })
	rootTerminating            = when("the root claim is terminating", "the root claim is not terminating", func(s *volume.Observed) bool { return deleting(s.Root) })
	rootWillBeBoundToIt        = when("the root claim is, or will be, bound to it", "the root claim neither is nor will be bound to it", func(s *volume.Observed) bool { return s.Own() })
	rootPlaced                 = when("the root claim is placed", "the root claim is not placed", func(s *volume.Observed) bool { return s.PlacedIn() != "" })
	rootPlacedHere             = when("the root claim is placed in this member", "the root claim is placed in another member", func(s *volume.Observed) bool { return s.PlacedIn() == s.Member.ClusterID })
	rootHasHostPVOfOtherLeafPV = when("the root claim's host PV represents another leaf PV with the same name", "", func(s *volume.Observed) bool { return problem.Mistaken(s) != nil })
	rootPlacedOrBoundElsewhere = when("the root claim is placed in another member, or names another volume", "", func(s *volume.Observed) bool { return s.Elsewhere() != "" })
	rootPlacedElsewhere        = when("the root claim is placed in another member", "", func(s *volume.Observed) bool { return s.PlacedIn() != "" && s.PlacedIn() != s.Member.ClusterID })
	rootSetToLost              = when("Kubernetes has set the root claim to Lost", "Kubernetes has not set the root claim to Lost", func(s *volume.Observed) bool { return s.Root.Status.Phase == corev1.ClaimLost })
	rootRequestsMoreStorage    = when("the root claim requests more storage, or cancels a failed expansion", "", func(s *volume.Observed) bool {
		_, grown := pvc.Growth(s.Root, s.Claim)
		return grown
	})
	attributesClassChanged = when("the root claim names another VolumeAttributesClass", "", func(s *volume.Observed) bool { return pvc.AttributesOf(s.Root, s.Claim) == pvc.AttributesChange })
	attributesClassRemoved = when("the root claim names no VolumeAttributesClass, but the member has applied one", "", func(s *volume.Observed) bool { return pvc.AttributesOf(s.Root, s.Claim) == pvc.AttributesFixed })
)

func deleting(obj metav1.Object) bool { return obj.GetDeletionTimestamp() != nil }

// Facts about a claim without a volume in the member.
var (
	hasNoVolumeHere            = when("a claim without a volume in this member", "", (*volume.Observed).Alone)
	rootNamesVolume            = when("it names a volume", "it names no volume", func(s *volume.Observed) bool { return s.Root.Spec.VolumeName != "" })
	memberSelected             = when("this member is selected", "this member is not selected", (*volume.Observed).Selected)
	schedulerAgrees            = when("the scheduler agrees, if recovery selected this member", "recovery selected this member, but the scheduler has not agreed yet", (*volume.Observed).Agreed)
	classBelongsToXylem        = when("the class belongs to Xylem", "the class does not belong to Xylem", func(s *volume.Observed) bool { return hostclass.Own(s.Class) })
	classMirrorsAndWaits       = when("the class is in mirror mode and waits for a consumer", "the class is not in mirror mode, or binds immediately", (*volume.Observed).Mirrors)
	rootBoundOutsideMember     = when("it is bound to a volume outside this member", "the volume that it names is not observed", func(s *volume.Observed) bool { return s.Placement.BoundAway })
	rootNamesMirrorOfLeafClaim = when("it names the host PV of its leaf claim's volume", "", (*volume.Observed).NamesMirror)
	mirrorTerminating          = when("its host PV is terminating", "", func(s *volume.Observed) bool { return terminatingPV(s.Placement.Mirror) })
	mirrorNamesOtherClaim      = when("the claimRef of its host PV does not name the root claim", "", func(s *volume.Observed) bool { return s.Placement.Diverted != nil })
	rootUnbound                = when("Kubernetes has not bound the root claim", "", func(s *volume.Observed) bool {
		return !metav1.HasAnnotation(s.Root.ObjectMeta, volumehelpers.AnnBindCompleted)
	})
	namedHostPVGone           = when("the PV that it names does not exist", "", func(s *volume.Observed) bool { return s.Placement.HostGone })
	hostRestoreUnconfirmed    = when("the restore of the host is unconfirmed", "", func(s *volume.Observed) bool { return s.Placement.HostUnconfirmed })
	placementConfirmed        = when("an admin allows the use of the leaf claim's volume, or the leaf claim predates the confirmed restore of the host", "", (*volume.Observed).Confirmed)
	mayHaveLeafClaimElsewhere = when("it is older than a restore of the host, and another member has a leaf claim for it, or cannot be queried", "", func(s *volume.Observed) bool { return s.MayBeForgotten() && s.Placement.Counterparts.Any() })
	memberRefusesClass        = when("the member refuses its class, or is being deregistered", "", func(s *volume.Observed) bool {
		return s.Member.Leaving && s.Answer().Refusal != nil || s.Answer().ByClass()
	})
	memberRefusesLeafClaim = when("the member refuses a leaf claim for it", "the member does not refuse a leaf claim for it", func(s *volume.Observed) bool { return problem.ReportRefused(s) != nil })
	memberHasNamespace     = when("the member has the root claim's namespace", "the member lacks the root claim's namespace", func(s *volume.Observed) bool { return s.Placement == nil || !s.Answer().Waits })

	provisionedVolumeGone = when("the leaf claim was created for a volume that is gone", "", func(s *volume.Observed) bool {
		return s.Claim != nil && s.Placement.Provisioned == nil && !metav1.HasAnnotation(s.Claim.ObjectMeta, volumehelpers.AnnBindCompleted)
	})
	provisionedVolumeTerminating = when("the leaf PV is terminating", "the leaf PV is not terminating", func(s *volume.Observed) bool { return terminatingPV(s.Placement.Provisioned) })

	requestedLeafPVIsHere           = when("the member has the leaf PV, and no host PV represents the leaf PV or has its name", "a host PV represents the leaf PV, or has its name", func(s *volume.Observed) bool { return s.Placement == nil || s.Placement.Asked != nil })
	requestedLeafPVInUse            = when("a claim in the member with the root claim's name is, or was, bound to the leaf PV", "", (*volume.Observed).AskedInUse)
	otherMembersHaveRequestedVolume = when("other members also have a volume that the claim requests", "", func(s *volume.Observed) bool { return s.Placement != nil && len(s.Placement.Rivals) > 0 })
	adoptionRefused                 = when("the claim may not adopt the volume", "", func(s *volume.Observed) bool { return s.ReportUnadoptable() != nil })
)

// Facts about the data source of a claim that has no volume in the member.
var (
	dataSourceIsPlaced    = when("a claim or a snapshot is its data source", "neither a claim nor a snapshot is its data source", (*volume.Observed).Pinned)
	dataSourceNotHere     = when("its data source is not in this member, or not ready", "", (*volume.Observed).SourceAway)
	dataSourceRefused     = when("the member cannot create it from its data source", "", func(s *volume.Observed) bool { return problem.ReportSource(s) != nil })
	dataSourceGone        = when("its data source is gone from the member", "", (*volume.Observed).SourceLost)
	dataSourceDiffers     = when("the leaf claim was not created from the root claim's data source", "", (*volume.Observed).Unlike)
	noPodToSchedule       = when("the leaf claim's class waits for a consumer, and no Pod of the claim is to be scheduled", "", func(s *volume.Observed) bool { return s.Placement.Attempt.Unconsumed })
	podNeedsDataElsewhere = when("its Pod uses another claim, whose data source is not in this member", "", (*volume.Observed).Apart)
	dataSourceNotRecorded = when("the location of its data source is not recorded", "", (*volume.Observed).SourceUnrecorded)
)

// Facts about a claim that is, or will be, bound to a promise without a disk.
var (
	noMemberObserved     = when("it has no PersistentVolume, and no member is observed", "", (*volume.Observed).Unobserved)
	lostRootNamesPromise = when("Kubernetes has set it to Lost, and it names a promise", "", func(s *volume.Observed) bool {
		return s.Root.Status.Phase == corev1.ClaimLost && hostpv.NamesPromise(s.Root.Spec.VolumeName)
	})
	classInPromiseMode            = when("the class belongs to Xylem and is in promise mode", "the class does not belong to Xylem, or is not in promise mode", func(s *volume.Observed) bool { return hostclass.Own(s.Class) && hostpv.Promises(s.Class) })
	promiseImpossible             = when("Xylem cannot create a promise for it", "", func(s *volume.Observed) bool { return hostpv.PromiseRefusal(s.Root, s.Class) != nil })
	rootBoundToPromiseWithoutDisk = when("it is bound to a promise without a disk", "it is not bound to a promise without a disk", func(s *volume.Observed) bool { return s.Promise != nil })
	promiseGone                   = when("its promise is gone", "it names no promise that is gone", func(s *volume.Observed) bool { return s.PromiseLost })
	rootNamesOwnPromise           = when("it names its own promise", "it does not name its own promise", (*volume.Observed).OwnPromise)
	promiseLabeledHere            = when("the promise is labeled for this member", "the promise is not labeled for this member", func(s *volume.Observed) bool { return s.LabelledFor() == s.Member.ClusterID })
	promiseLabeledElsewhere       = when("the promise is labeled for another member", "", func(s *volume.Observed) bool {
		return s.LabelledFor() != "" && s.LabelledFor() != s.Member.ClusterID
	})
	podUsesItHere      = when("a Pod in this member uses it", "no Pod in this member uses it", func(s *volume.Observed) bool { return len(s.Placement.Pods) > 0 })
	promiseAbandoned   = when("an admin has annotated the promise with "+v1alpha1.AnnotationAbandon, "", func(s *volume.Observed) bool { return hostpv.Abandoned(s.Promise) })
	promiseTerminating = when("the promise is terminating", "", func(s *volume.Observed) bool { return terminatingPV(s.Promise) })
	memberKeepsPromise = when("it has a leaf claim, and no admin has released its promise from this member", "", (*volume.Observed).KeepsPromise)
)

// terminatingPV reports whether a PV is being deleted. Kubernetes keeps the PV while it is Bound,
// but the PV controller does not bind another claim to it.
func terminatingPV(pv *corev1.PersistentVolume) bool { return pv != nil && pv.DeletionTimestamp != nil }
