package lifecycle

import (
	"slices"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/volume"
)

// promiseSections contains the sections of promise mode that apply until the promise is fulfilled.
var promiseSections = []section{
	{Title: "A claim without a PersistentVolume, as the controller promise observes it", When: []fact{noMemberObserved}, Rows: []row{
		{Phase: Unpromised, When: []fact{rootTerminating}, Owner: Promise, Until: "the claim is gone"},
		{Phase: Lost, When: []fact{not(classInPromiseMode), lostRootNamesPromise}, Owner: Promise, Reasons: v1alpha1.ReasonBroken, Report: volume.ReportPromiseGone, Until: "the class belongs to Xylem and is in promise mode"},
		{Phase: Unpromised, When: []fact{not(classInPromiseMode)}, Owner: Promise, Until: "the class belongs to Xylem and is in promise mode"},
		{Phase: Unpromised, When: []fact{promiseImpossible}, Owner: Promise, Until: "the claim is re-created; host_claim reports why this is necessary"},
		{Phase: Unpromised, When: []fact{dataSourceNotRecorded}, Owner: Promise, Until: "the controller source records the location of the data source; if it cannot, host_claim reports why"},
		{Phase: Unpromised, Step: CreatePromise, Owner: Promise},
	}},
	{Title: "An admin has abandoned the promise, and host_volume has not released the promise from its member yet", When: []fact{hasNoVolumeHere, rootBoundToPromiseWithoutDisk, promiseAbandoned}, Rows: []row{
		{Phase: Terminating, When: []fact{promiseTerminating, either(podUsesItHere, hasLeafClaim)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeTerminating, Report: volume.ReportPromiseTerminating, Until: "the claim is gone"},
		{Phase: Abandoned, Owner: HostVolume, Until: "host_volume has released the promise"},
	}},
	{Title: "The claim of a promise without a disk is placed in another member", When: []fact{hasNoVolumeHere, rootBoundToPromiseWithoutDisk, rootPlacedElsewhere}, Rows: []row{
		{Phase: Withdrawing, When: []fact{leafClaimNamesNoVolume}, Step: Withdraw, Owner: RootPVC},
		{Phase: Unplacing, When: []fact{not(hasLeafClaim), promiseLabeledHere}, Step: Unlabel, Owner: RootPVC},
		{Phase: Promised, When: []fact{either(podUsesItHere, hasLeafClaim)}, Owner: RootPVC, Reasons: v1alpha1.ReasonPlacedElsewhere, Report: volume.ReportPlacedElsewhere, Until: "the claim is placed in this member, or is no longer placed"},
		{Phase: Promised, Owner: RootPVC, Until: "a Pod of the claim is bound to this member's node"},
	}},
	{Title: "The claim of a promise without a disk is not placed", When: []fact{hasNoVolumeHere, rootBoundToPromiseWithoutDisk, not(rootPlaced)}, Rows: slices.Concat([]row{
		{Phase: Promised, When: []fact{podUsesItHere, not(hasLeafClaim), not(rootTerminating), dataSourceNotHere}, Owner: RootPVC, Reasons: awaySourceReasons, Report: volume.ReportSourceNotReadyHere, Until: "the data source is ready in this member, or the Pod is deleted"},
		{Phase: Unconfirmed, When: []fact{podUsesItHere, not(rootTerminating), mayHaveLeafClaimElsewhere}, Owner: RootPVC, Reasons: v1alpha1.ReasonPlacementUnconfirmed, Report: volume.ReportMayBePlacedElsewhere, Until: untilCounterpartsKnown},
		{Phase: Placing, When: []fact{podUsesItHere, not(rootTerminating)}, Step: Place, Owner: RootPVC},
	}, unrecordedPlacementRows(memberKeepsPromise), []row{
		{Phase: Withdrawing, When: []fact{leafClaimNamesNoVolume}, Step: Withdraw, Owner: RootPVC},
		{Phase: Surplus, When: []fact{hasLeafClaim}, Owner: RootPVC, Reasons: v1alpha1.ReasonSurplusVolume, Report: volume.ReportAbandonedPromiseVolume, Until: "a Pod of the claim is bound to this member's node, or the leaf claim is gone"},
		{Phase: Promised, When: []fact{promiseLabeledElsewhere}, Owner: RootPVC, Until: "the other member releases the promise"},
		{Phase: Promised, When: []fact{not(promiseLabeledHere)}, Owner: RootPVC, Until: "a Pod of the claim is bound to this member's node"},
	})},
	{Title: "The claim of a promise without a disk is assigned to this member", When: []fact{hasNoVolumeHere, rootBoundToPromiseWithoutDisk}, Rows: []row{
		{Phase: Promised, When: []fact{promiseLabeledElsewhere}, Owner: RootPVC, Until: "the other member releases the promise"},
		{Phase: Placing, When: []fact{not(promiseLabeledHere), podUsesItHere, not(rootTerminating)}, Step: Label, Owner: RootPVC},
		{Phase: Placing, When: []fact{not(promiseLabeledHere), memberKeepsPromise}, Step: Label, Owner: RootPVC},
		{Phase: Unplacing, When: []fact{not(promiseLabeledHere)}, Step: Unplace, Owner: RootPVC},
	}},
	{Title: "A Pod waits for a promise's disk, which this member must provision", When: []fact{hasNoVolumeHere, rootBoundToPromiseWithoutDisk, not(hasLeafClaim), podUsesItHere, not(rootTerminating)}, Rows: []row{
		{Phase: Placing, When: []fact{dataSourceNotHere}, Owner: RootPVC, Reasons: awaySourceReasons, Report: volume.ReportSourceNotReadyHere, Until: "the data source is ready, or the claim is deleted"},
		{Phase: Placing, When: []fact{memberRefusesLeafClaim}, Owner: RootPVC, Reasons: classReasons + ", " + refusalReasons, Report: volume.ReportLeafClaimRefused, Until: "the cause of the refusal changes"},
		{Phase: Placing, When: []fact{dataSourceRefused}, Owner: RootPVC, Reasons: sourceReasons, Report: volume.ReportSourceRefused, Until: "the claim's data source changes, or the claim is deleted"},
		{Phase: Placing, When: []fact{not(memberHasNamespace)}, Owner: RootPVC, Until: "leaf_namespace creates the namespace"},
		{Phase: Unconfirmed, When: []fact{mayHaveLeafClaimElsewhere}, Owner: RootPVC, Reasons: v1alpha1.ReasonPlacementUnconfirmed, Report: volume.ReportMayBePlacedElsewhere, Until: untilCounterpartsKnown},
		{Phase: Placing, Step: CreateClaim, Owner: RootPVC},
	}},
	{Title: "A promise without a disk and its claim are assigned to this member", When: []fact{hasNoVolumeHere, rootBoundToPromiseWithoutDisk}, Rows: []row{
		{Phase: Unplacing, When: []fact{not(hasLeafClaim)}, Step: Unlabel, Owner: RootPVC},
		{Phase: Withdrawing, When: []fact{leafClaimNamesNoVolume, dataSourceGone}, Step: Withdraw, Owner: RootPVC},
		{Phase: Mismatched, When: []fact{dataSourceDiffers}, Owner: RootPVC, Reasons: v1alpha1.ReasonSourceMismatch, Report: volume.ReportDataSourceDiffers, Until: "the claim is gone"},
		{Phase: Lost, When: []fact{not(leafClaimNamesNoVolume), provisionedVolumeGone}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost, Report: volume.ReportProvisionedVolumeVanished, Until: "the leaf claim is gone, or the volume exists again"},
		{Phase: Lost, When: []fact{leafClaimLostItsVolume}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost, Report: volume.ReportProvisionedLost, Until: "the leaf claim or the claim is gone, or the leaf claim is bound again"},
		{Phase: Provisioned, When: []fact{not(leafClaimNamesNoVolume), not(provisionedVolumeTerminating)}, Owner: RootPVC, Until: "leaf_pv fulfills the promise"},
		{Phase: Withdrawing, When: []fact{leafClaimNamesNoVolume, not(podUsesItHere)}, Step: Withdraw, Owner: RootPVC},
		{Phase: Terminating, When: []fact{provisionedVolumeTerminating}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeTerminating, Report: volume.ReportProvisionedTerminating, Until: "the claim is gone"},
		{Phase: Provisioning, Owner: RootPVC, Reasons: failureReasons, Report: volume.ReportProvisioningFailure, Until: "the member provisions the disk, or no Pod uses the claim"},
	}},
	{Title: "A promise that is not assigned to a member", When: []fact{promiseHasNoMember, not(abandonedByAdmin)}, Rows: []row{
		{Phase: Ending, When: []fact{hostPVEnded, either(not(hostPVTerminating), hostPVHasFinalizer)}, Step: DropPromise, Owner: HostVolume},
		{Phase: Ending, When: []fact{hostPVTerminating, hostPVHasFinalizer, hostPVFree}, Step: DropFinalizer, Owner: HostVolume},
		{Phase: Ending, When: []fact{promiseSuperseded}, Step: DropPromise, Owner: HostVolume},
		{Phase: Promised, Owner: RootPVC, Until: "a Pod that uses it is bound to a node"},
	}},
	{Title: "A volume or a promise that an admin has abandoned", When: []fact{abandonedByAdmin}, Rows: []row{
		{Phase: Abandoned, When: []fact{promiseMovable}, Step: FreePromise, Owner: HostVolume, Reasons: v1alpha1.ReasonAbandoned},
		{Phase: Abandoned, When: []fact{either(hostPVEnded, hostPVHasNoClaimRef), not(hostPVTerminating)}, Step: DeleteHost, Owner: HostVolume},
		{Phase: Abandoned, When: []fact{either(hostPVHasFinalizer, mayHaveCopiesElsewhere)}, Step: AbandonHost, Owner: HostVolume, Reasons: v1alpha1.ReasonAbandoned},
	}},
	{Title: "A promise without a disk that is assigned to this member", When: []fact{promiseHasNoDisk}, Rows: []row{
		{Phase: Ending, When: []fact{not(abandonedByAdmin), hostPVHasFinalizer, hostPVEnded}, Step: EndPromise, Owner: RootPV},
		{Phase: Ending, When: []fact{not(abandonedByAdmin), hostPVHasFinalizer, hostPVTerminating, hostPVFree}, Step: DropFinalizer, Owner: RootPV},
		{Phase: Promised, Owner: RootPVC, Until: "the member has provisioned the disk, or no Pod uses it"},
	}},
	{Title: "A promise that is being released, because no Pod used its disk", When: []fact{diskReleasedWhenUnused, not(abandonedByAdmin), markedAsReleasing}, Rows: []row{
		{Phase: Mirrored, When: []fact{hostPVUnguarded}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Holding, When: []fact{hasLeafPV, leafPVPolicyDelete, either(not(mustBeDestroyed), copyStillToBeCreated), either(not(leafPVTerminating), leafClaimNamesIt)}, Step: SetRetain, Owner: LeafPV},
		{Phase: Releasing, When: []fact{either(not(hasLeafPV), leafPVPolicyDelete), leafClaimNamesIt, not(leafClaimTerminating)}, Step: DeleteUnused, Owner: RootPV},
		{Phase: Releasing, When: []fact{not(hasLeafPV), not(leafClaimNamesIt)}, Step: Unfulfil, Owner: RootPV},
		{Phase: Releasing, When: []fact{either(not(hasLeafPV), leafPVPolicyDelete)}, Owner: RootPV, Until: "the leaf claim and the leaf PV are gone"},
		{Phase: Idle, When: []fact{usedOrStillNeeded}, Step: Unmark, Owner: RootPV},
		{Phase: Idle, When: []fact{marksMayPredateRestore}, Step: Unmark, Owner: RootPV},
		{Phase: Releasing, When: []fact{podHasUsedIt, mustBeDestroyed}, Step: SetDeleteUnused, Owner: RootPV},
		{Phase: Idle, When: []fact{hasLeafPV}, Owner: RootPV, Reasons: v1alpha1.ReasonReleaseRefused, Report: volume.ReportUnusedDiskKept, Until: "the policies change, or a Pod uses it"},
	}},
}
