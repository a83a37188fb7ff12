package lifecycle

import (
	"slices"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/volume"
)

// volumeSections contains the sections for volumes that exist, or existed, in both modes.
var volumeSections = []section{
	{Title: "Two host PVs represent it", When: []fact{twoHostPVsRepresentIt}, Rows: []row{
		{Phase: Holding, When: []fact{leafPVStamped, not(leafPVRetainedOrGone)}, Step: SetRetain, Owner: LeafPV},
		{Phase: Retained, When: []fact{hostPVTerminating, hostPVHasFinalizer}, Step: DropKept, Owner: RootPV},
		{Phase: Mismatched, When: []fact{rootBoundToIt, not(leafClaimHoldsIt)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: volume.ReportTwinHostVolumes, Until: "one of the two host PVs is gone"},
		{Phase: Mismatched, Owner: RootPV, Reasons: v1alpha1.ReasonVolumeMismatch, Report: volume.ReportTwinHostVolumes, Until: "one of the two host PVs is gone"},
	}},
	{Title: "An admin's host PV requests it, but Xylem has not recorded that PV", When: []fact{not(hasHostVolume)}, Rows: []row{
		{Phase: Importing, When: []fact{importMayAdoptIt}, Step: Import, Owner: LeafPV},
		{Phase: Importing, When: []fact{rootBoundToImport}, Owner: RootPVC, Reasons: "AdoptionRefused, ConsentMissing", Report: volume.ReportImportRefused, Until: "the host PV may adopt the volume, or the claim is deleted"},
	}},
	{Title: "An admin's host PV represents it, and no claim has used it yet", When: []fact{importNotStampedYet}, Rows: []row{
		{Phase: Importing, When: []fact{not(hostPVTerminating), not(abandonedByAdmin), memberAdminConsented}, Step: Take, Owner: LeafPV},
		{Phase: Importing, When: []fact{hostPVTerminating, hostPVHasFinalizer, either(hostPVFree, hostPVEnded)}, Step: DropKept, Owner: RootPV},
		{Phase: Importing, When: []fact{rootBoundToIt, not(rootTerminating)}, Owner: RootPVC, Reasons: "AdoptionRefused, ConsentMissing", Report: volume.ReportImportNotTaken, Until: "the host PV may adopt the volume, or the claim is deleted"},
		{Phase: Importing, Owner: LeafPV, Reasons: "AdoptionRefused, ConsentMissing", Report: volume.ReportImportNotTaken, Until: "the host PV may adopt the volume, or is deleted"},
	}},

	{Title: "A claim that the host may have lost in a restore used it last: retain it", When: []fact{lastClaimMayBeLost, not(abandonedByAdmin)}, Rows: []row{
		{Phase: Holding, Step: UpdateHost, Owner: LeafPV},
	}},
	{Title: "Its claim is gone: retain the volume if it must outlive the claim", When: []fact{not(hasRootClaim)}, Rows: []row{
		{Phase: Holding, When: []fact{not(hasHostVolume), hostPVRepresentsEarlierLeafPV, leafPVNotSecured}, Step: Secure, Owner: LeafPV},
		{Phase: Holding, When: []fact{not(leafPVStamped), leafClaimHoldsIt, mayHaveBeenMirrored, leafPVNotStampedAndRetained}, Step: Stamp, Owner: LeafPV},
		{Phase: Holding, When: []fact{hasHostVolume, not(abandonedByAdmin), leafPVStamped, not(leafPVRetainedOrGone), either(policyRetainsIt, hostPVFreedForAnotherClaim, otherLeafClaimHoldsIt, clonesArePending)}, Step: SetRetain, Owner: LeafPV},
		{Phase: Adopting, When: []fact{not(hasHostVolume), leafPVStamped, successorMayAdoptIt}, Step: Adopt, Owner: LeafPV},
		{Phase: Provisioned, When: []fact{not(hasHostVolume), leafPVStamped, leafPVRetainedOrGone, not(leafPVTerminating), promiseAssignedHere}, Step: Fulfil, Owner: LeafPV},
		{Phase: Holding, When: []fact{not(hasHostVolume), leafPVStamped, leafPVNotSecured}, Step: Secure, Owner: LeafPV},
		{Phase: Holding, When: []fact{hostPVUnguarded, not(abandonedByAdmin)}, Step: UpdateHost, Owner: LeafPV},
	}},
	{Title: "A leaf claim of an earlier root still names it, but is not bound to it", When: []fact{leftOverClaimNamesIt, not(abandonedByAdmin)}, Rows: []row{
		{Phase: Ending, When: []fact{not(leftOverClaimTerminating), outlivesLeftOverClaim}, Step: DeleteLeft, Owner: RootPVC},
	}},
	{Title: "The leaf claim of another root is bound to it", When: []fact{hasHostVolume, not(abandonedByAdmin)}, Rows: []row{
		{Phase: Holding, When: []fact{otherLeafClaimHoldsIt, not(leafPVStamped)}, Step: Stamp, Owner: LeafPV},
		{Phase: Ending, When: []fact{hostPVHasFinalizer, staleLeafClaimHoldsIt, leafPVRetainedOrGone}, Step: DeleteStale, Owner: RootPV},
		{Phase: Free, When: []fact{hostPVHasFinalizer, not(hostPVEnded), hostPVTerminating, hostPVFree}, Step: DropKept, Owner: RootPV},
	}},
	{Title: "Its claim is gone, and its host PV has ended", When: []fact{not(hasRootClaim), hostPVEnded}, Rows: []row{
		{Phase: Destroying, When: []fact{not(abandonedByAdmin), not(hostPVHasFinalizer), not(hostPVTerminating), not(mayHaveCopiesElsewhere), mustBeDestroyed, not(hasLeafPV), not(leafClaimNamesIt)}, Step: DropHost, Owner: RootPV},
		{Phase: Retained, When: []fact{either(abandonedByAdmin, not(hostPVHasFinalizer))}, Owner: RootPV, Until: "the host PV is gone"},
		{Phase: Ending, When: []fact{either(mayHaveCopiesElsewhere, clonesArePending)}, Owner: RootPV, Reasons: v1alpha1.ReasonStillNeeded, Report: volume.ReportVolumeNeeded, Until: "shared_pv has removed the copies, and the claims have their disks or are gone"},
		{Phase: Destroying, When: []fact{mustBeDestroyed, not(hasLeafPV), not(leafClaimNamesIt)}, Step: DropHost, Owner: RootPV},
		{Phase: Destroying, When: []fact{mustBeDestroyed, hasLeafPV, not(leafPVTerminating), not(leafPVPolicyDelete)}, Step: SetDelete, Owner: RootPV},
		{Phase: Ending, When: []fact{leafClaimNamesIt, leafClaimTerminating}, Owner: RootPV, Until: "the leaf claim is gone"},
		{Phase: Ending, When: []fact{leafClaimNamesIt, leafClaimMayBeDeleted}, Step: DeleteClaim, Owner: RootPV},
		{Phase: Retained, When: []fact{not(mustBeDestroyed), hostPVTerminating, either(not(leafClaimNamesIt), not(otherLeafPVHasItsName))}, Step: DropKept, Owner: RootPV},
		{Phase: Mirrored, When: []fact{hostPVOutdated}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Retained, When: []fact{not(leafClaimNamesIt), policyIsRecycle}, Owner: RootPV, Reasons: v1alpha1.ReasonReclaimPolicyUnsupported, Report: volume.ReportPolicyUnsupported, Until: "the host PV changes"},
		{Phase: Retained, When: []fact{not(leafClaimNamesIt), adoptedButNeverUsed}, Owner: RootPV, Reasons: v1alpha1.ReasonReleaseRefused, Report: volume.ReportKeptNeverUsed, Until: "the host PV changes"},
		{Phase: Destroying, When: []fact{mustBeDestroyed}, Owner: RootPV, Until: "the leaf PV is gone"},
		{Phase: Retained, Owner: RootPV, Until: "the host PV changes"},
	}},
	{Title: "Its claim is gone, and a new claim with the same name requests it", When: []fact{not(hasRootClaim), hasLeafClaim, not(leafClaimTerminating), successorRequestsIt}, Rows: slices.Concat([]row{
		{Phase: Adopting, When: []fact{not(requestedLeafPVIsHere)}, Owner: RootPVC, Until: "that host PV is gone"},
	}, adoptingRows(), []row{
		{Phase: Adopting, Step: AdoptClaim, Owner: RootPVC},
	})},
	{Title: "Its claim is gone, and its leaf claim remains", When: []fact{not(hasRootClaim), hasLeafClaim}, Rows: []row{
		{Phase: Withdrawing, When: []fact{leafClaimTerminating}, Owner: RootPVC, Until: "the leaf claim is gone"},
		{Phase: Withdrawing, When: []fact{leafClaimNamesNoVolume}, Step: Withdraw, Owner: RootPVC},
		{Phase: Ending, When: []fact{not(hasHostVolume), not(hostPVRepresentsEarlierLeafPV), not(hasLeafPV), not(leafClaimBound)}, Step: DeleteLost, Owner: RootPVC},
		{Phase: Ending, When: []fact{not(hasHostVolume), not(hostPVRepresentsEarlierLeafPV), leafClaimHoldsIt, not(leafPVStamped), not(mayHaveBeenMirrored)}, Step: DestroyUnmirrored, Owner: RootPVC},
		{Phase: Ending, When: []fact{not(hasHostVolume), hostPVRepresentsEarlierLeafPV, leafClaimHoldsIt, leafPVStamped}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeReplaced, Report: volume.ReportHeldByEarlierClaim, Until: "the earlier host PV is released"},
		{Phase: Ending, When: []fact{not(hasHostVolume), leafClaimHoldsIt, leafPVStamped, leafPVRetainedOrGone, either(not(promiseAssignedHere), leafPVTerminating)}, Step: DeleteRetained, Owner: RootPVC},
		{Phase: Ending, Owner: RootPVC, Until: "the host PV is released, or the leaf PV changes"},
	}},
	{Title: "Its claim is gone, and nothing is left to do", When: []fact{not(hasRootClaim)}, Rows: []row{
		{Phase: Mirrored, When: []fact{hostPVOutdated, not(abandonedByAdmin)}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Orphaned, When: []fact{not(hasHostVolume), leafPVStamped}, Owner: LeafPV, Reasons: v1alpha1.ReasonOrphanedVolume, Until: "the member's admin deletes it, or a claim may adopt it"},
		{Phase: Free, When: []fact{hasHostVolume}, Owner: RootPV, Until: "a claim is bound to it, or it is released"},
		{Phase: Foreign, Until: "it is related to this host"},
	}},

	{Title: "Its host PV has ended, and its claim is, or will be, bound to another volume", When: []fact{hostPVEnded, not(rootWillBeBoundToIt), not(abandonedByAdmin), hostPVHasFinalizer}, Rows: []row{
		{Phase: Ending, When: []fact{either(mayHaveCopiesElsewhere, clonesArePending)}, Owner: RootPV, Reasons: v1alpha1.ReasonStillNeeded, Report: volume.ReportVolumeNeeded, Until: "shared_pv has removed the copies, and the claims have their disks or are gone"},
		{Phase: Destroying, When: []fact{mustBeDestroyed, not(hasLeafPV), not(leafClaimNamesIt)}, Step: DropHost, Owner: RootPV},
		{Phase: Retained, When: []fact{not(mustBeDestroyed), hostPVTerminating, either(not(leafClaimNamesIt), not(otherLeafPVHasItsName))}, Step: DropKept, Owner: RootPV},
	}},
	{Title: "Its claim is, or will be, bound to another volume", When: []fact{relatedToThisHost, not(rootWillBeBoundToIt)}, Rows: []row{
		{Phase: Mismatched, When: []fact{not(hasHostVolume), rootHasHostPVOfOtherLeafPV, leafPVNotSecured}, Step: Secure, Owner: LeafPV},
		{Phase: Mismatched, When: []fact{not(hasHostVolume), rootHasHostPVOfOtherLeafPV}, Owner: LeafPV, Reasons: "VolumeReplaced, VolumeMismatch", Report: volume.ReportMistakenHostVolume, Until: "the claim is deleted, or an admin resolves the mismatch"},
		{Phase: Surplus, When: []fact{rootPlacedOrBoundElsewhere}, Owner: LeafPV, Reasons: v1alpha1.ReasonSurplusVolume, Report: volume.ReportSurplusVolume, Until: "the claim is deleted, or is placed in this member"},
		{Phase: Provisioned, When: []fact{not(rootPlaced)}, Owner: RootPVC, Until: "root_pvc places the claim in this member"},
	}},
	{Title: "Its host PV has ended, but its claim is still in the cache", When: []fact{rootWillBeBoundToIt, hostPVEnded}, Rows: []row{
		{Phase: Ending, Owner: RootPV, Until: "the cache shows that the claim is gone"},
	}},
	{Title: "It is not a copy of its claim's data source, and is not mirrored yet", When: []fact{relatedToThisHost, not(hasHostVolume), leafClaimHoldsIt, dataSourceDiffers}, Rows: []row{
		{Phase: Mismatched, Owner: RootPVC, Until: "the claim is deleted; root_pvc reports the mismatch"},
	}},
	{Title: "Its claim will be bound to it: retain and mirror it", When: []fact{relatedToThisHost}, Rows: []row{
		{Phase: Reusing, When: []fact{not(markedAsReleasing), not(leafClaimHoldsIt), leafPVStamped, not(leafPVRetainedOrGone)}, Step: SetRetain, Owner: LeafPV},
		{Phase: Provisioned, When: []fact{not(hasHostVolume), not(leafClaimNamesIt), leafPVRetainedOrGone, not(leafPVTerminating), rootAwaitsPromise, promiseAssignedHere}, Step: Fulfil, Owner: LeafPV},
		{Phase: Reusing, When: []fact{rootBoundToIt, leafClaimNamesIt, not(leafClaimTerminating), not(leafClaimHoldsIt), leafPVStamped, not(leafPVTerminating), not(leafPVBound)}, Step: Repoint, Owner: LeafPV},
		{Phase: Holding, When: []fact{not(markedAsReleasing), leafClaimAndLeafPVBound, leafPVNotStampedAndRetained}, Step: Stamp, Owner: LeafPV},
		{Phase: Holding, When: []fact{hostPVUnguarded, not(abandonedByAdmin), either(markedAsReleasing, leafClaimAndLeafPVBound, otherLeafClaimHoldsIt)}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Provisioned, When: []fact{not(hasHostVolume), leafClaimAndLeafPVBound, not(leafPVTerminating), rootAwaitsPromise, promiseAssignedHere}, Step: Fulfil, Owner: LeafPV},
		{Phase: Provisioned, When: []fact{not(hasHostVolume), leafClaimAndLeafPVBound, not(leafPVTerminating), not(rootAwaitsPromise)}, Step: CreateHost, Owner: LeafPV},
	}},
	{Title: "Its claim is not bound to it yet", When: []fact{not(rootBoundToIt)}, Rows: []row{
		{Phase: Mirrored, When: []fact{hostPVOutdated, not(abandonedByAdmin), leafClaimAndLeafPVBound}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Provisioning, When: []fact{not(hasHostVolume)}, Owner: RootPVC, Until: "the leaf claim and the leaf PV are Bound to each other"},
		{Phase: Mirrored, Owner: RootPVC, Until: "the host binds the claim"},
	}},
	{Title: "Its claim is bound to it, and its disk is released when no Pod uses it", When: []fact{diskReleasedWhenUnused, not(abandonedByAdmin)}, Rows: []row{
		{Phase: Mirrored, When: []fact{rootPlacedHere, hostPVOutdated, leafClaimAndLeafPVBound}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Idle, When: []fact{hostPVHasFinalizer, usedOrStillNeeded, markedAsUnused}, Step: Unmark, Owner: RootPV},
	}},
	{Title: "Its claim is bound to it, and no Pod uses its disk any longer: release the disk", When: []fact{diskReleasedWhenUnused, not(abandonedByAdmin), hostPVHasFinalizer, not(usedOrStillNeeded), podHasUsedIt, hasLeafPV, mustBeDestroyed}, Rows: []row{
		{Phase: Idle, When: []fact{not(markedAsUnusedSinceValidTime)}, Step: MarkUnused, Owner: RootPV},
		{Phase: Idle, When: []fact{not(podsListedSinceMark)}, Step: CountGrace, Owner: RootPV},
		{Phase: Idle, When: []fact{not(gracePeriodOver)}, Owner: RootPV, Until: "the grace period is over, or a Pod uses it"},
		{Phase: Idle, Step: MarkReleasing, Owner: RootPV},
	}},
	{Title: "Its claim is bound to it", Rows: []row{
		{Phase: Bound, When: []fact{leafClaimTerminating}, Owner: RootPVC, Until: "the leaf claim is gone"},
		{Phase: Ending, When: []fact{rootTerminating}, Owner: RootPVC, Until: "the root claim is gone"},
		{Phase: Bound, When: []fact{not(rootPlaced)}, Step: Place, Owner: RootPVC},
		{Phase: Bound, When: []fact{not(rootPlacedHere)}, Owner: RootPVC, Reasons: v1alpha1.ReasonPlacedElsewhere, Report: volume.ReportPlacedElsewhere, Until: "the claim is placed in this member"},
		{Phase: Releasing, When: []fact{markedAsReleasing}, Owner: RootPV, Until: "the disk is gone"},
		{Phase: Lost, When: []fact{not(hasLeafPV), otherLeafPVHasItsName}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeReplaced, Report: volume.ReportVolumeReplaced, Until: "the claim is deleted"},
		{Phase: Lost, When: []fact{not(hasLeafPV)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost, Report: volume.ReportVolumeLost, Until: "the leaf PV exists again, or the claim is deleted"},
		{Phase: Bound, When: []fact{leafPVTerminating}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeTerminating, Report: volume.ReportVolumeTerminating, Until: "the claim is deleted"},
		{Phase: InUse, When: []fact{otherLeafClaimHoldsIt, otherLeafClaimHasRoot}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: volume.ReportOtherHolder, Until: "the other root claim is gone"},
		{Phase: Reusing, When: []fact{earlierLeafClaimHasName}, Owner: RootPVC, Until: "that leaf claim is gone"},
		{Phase: Reusing, When: []fact{not(hasLeafClaim), memberRefusesLeafClaim}, Owner: RootPVC, Reasons: refusalReasons, Report: volume.ReportLeafClaimRefused, Until: "the cause of the refusal changes"},
		{Phase: Reusing, When: []fact{not(hasLeafClaim), not(memberHasNamespace)}, Owner: RootPVC, Until: "leaf_namespace creates the namespace"},
		{Phase: Reusing, When: []fact{not(hasLeafClaim)}, Step: CreateClaim, Owner: RootPVC},
		{Phase: Reusing, When: []fact{leafClaimNamesNoVolume, leafPVNamesLeafClaim}, Owner: RootPVC, Until: "the member binds the leaf claim"},
		{Phase: Withdrawing, When: []fact{leafClaimNamesNoVolume}, Step: Withdraw, Owner: RootPVC},
		{Phase: Mismatched, When: []fact{not(leafClaimNamesIt)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: volume.ReportVolumeMismatch, Until: "the claim is deleted, or an admin resolves the mismatch"},
		{Phase: Mismatched, When: []fact{leafPVNamesOtherClaim, not(leafPVBound), not(leafPVStamped)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: volume.ReportStampLost, Until: "the member's admin restores the stamp"},
		{Phase: InUse, When: []fact{leafPVNamesOtherClaim, leafPVBound}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: volume.ReportVolumeInUse, Until: "the other claim is deleted"},
		{Phase: Lost, When: []fact{leafClaimLost}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost, Report: volume.ReportLeafClaimLost, Until: "the leaf claim or the claim is deleted"},
		{Phase: Reusing, When: []fact{leafClaimNotBoundAgain}, Step: Touch, Owner: RootPVC},
		{Phase: Mirrored, When: []fact{hostPVOutdated, not(abandonedByAdmin), either(markedAsReleasing, leafClaimAndLeafPVBound)}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Bound, When: []fact{rootRequestsMoreStorage}, Step: Grow, Owner: RootPVC},
		{Phase: Bound, When: []fact{attributesClassChanged}, Step: Modify, Owner: RootPVC},
		{Phase: Bound, When: []fact{attributesClassRemoved}, Owner: RootPVC, Reasons: v1alpha1.ReasonModifyUnsupported, Report: volume.ReportAttributesClassNotRemovable, Until: "the claim names a class"},
		{Phase: Idle, When: []fact{diskReleasedWhenUnused, not(abandonedByAdmin), hostPVHasFinalizer, not(usedOrStillNeeded)}, Owner: RootPV, Reasons: v1alpha1.ReasonReleaseRefused, Report: volume.ReportUnusedDiskKept, Until: "the policies change, or a Pod uses it"},
		{Phase: Bound, Owner: RootPVC, Until: "the claim changes"},
	}},
}
