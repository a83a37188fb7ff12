package lifecycle

import (
	"slices"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/volume/problem"
)

// promises contains the sections of promise mode that apply until the promise is fulfilled.
var promises = []section{
	{Title: "A claim without a PersistentVolume, as the controller promise observes it", When: []fact{unobserved}, Rows: []row{
		{Phase: Unpromised, When: []fact{rootDeleting}, Owner: Promise, Until: "the claim is gone"},
		{Phase: Lost, When: []fact{not(ofPromises), promiseOfLost}, Owner: Promise, Reasons: v1alpha1.ReasonBroken, Report: problem.ReportPromiseLost, Until: "the class belongs to Xylem and is in promise mode"},
		{Phase: Unpromised, When: []fact{not(ofPromises)}, Owner: Promise, Until: "the class belongs to Xylem and is in promise mode"},
		{Phase: Unpromised, When: []fact{unpromisable}, Owner: Promise, Until: "the claim is re-created; host_claim reports why this is necessary"},
		{Phase: Unpromised, When: []fact{unrecordedYet}, Owner: Promise, Until: "the controller source records the location of the data source; if it cannot, host_claim reports why"},
		{Phase: Unpromised, Step: CreatePromise, Owner: Promise},
	}},
	{Title: "An admin has abandoned the promise, and host_volume has not released the promise from its member yet", When: []fact{alone, diskless, givenUp}, Rows: []row{
		{Phase: Terminating, When: []fact{promiseDeleting, either(podHere, hasClaim)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeTerminating, Report: problem.ReportPromiseTerminating, Until: "the claim is gone"},
		{Phase: Abandoned, Owner: HostVolume, Until: "host_volume has released the promise"},
	}},
	{Title: "The claim of a promise without a disk is placed in another member", When: []fact{alone, diskless, placedAway}, Rows: []row{
		{Phase: Withdrawing, When: []fact{claimUnbound}, Step: Withdraw, Owner: RootPVC},
		{Phase: Unplacing, When: []fact{not(hasClaim), labelledHere}, Step: Unlabel, Owner: RootPVC},
		{Phase: Promised, When: []fact{either(podHere, hasClaim)}, Owner: RootPVC, Reasons: v1alpha1.ReasonPlacedElsewhere, Report: problem.ReportElsewhere, Until: "the claim is placed in this member, or is no longer placed"},
		{Phase: Promised, Owner: RootPVC, Until: "a Pod of the claim is bound to this member's node"},
	}},
	{Title: "The claim of a promise without a disk is not placed", When: []fact{alone, diskless, not(placed)}, Rows: slices.Concat([]row{
		{Phase: Promised, When: []fact{podHere, not(hasClaim), not(rootDeleting), sourceAway}, Owner: RootPVC, Reasons: awaySources, Report: problem.ReportSourceAway, Until: "the data source is ready in this member, or the Pod is deleted"},
		{Phase: Unconfirmed, When: []fact{podHere, not(rootDeleting), maybeElsewhere}, Owner: RootPVC, Reasons: v1alpha1.ReasonPlacementUnconfirmed, Report: problem.ReportMaybeElsewhere, Until: askedAgain},
		{Phase: Placing, When: []fact{podHere, not(rootDeleting)}, Step: Place, Owner: RootPVC},
	}, unrecorded(kept), []row{
		{Phase: Withdrawing, When: []fact{claimUnbound}, Step: Withdraw, Owner: RootPVC},
		{Phase: Surplus, When: []fact{hasClaim}, Owner: RootPVC, Reasons: v1alpha1.ReasonSurplusVolume, Report: problem.ReportTaken, Until: "a Pod of the claim is bound to this member's node, or the leaf claim is gone"},
		{Phase: Promised, When: []fact{labelledElsewhere}, Owner: RootPVC, Until: "the other member releases the promise"},
		{Phase: Promised, When: []fact{not(labelledHere)}, Owner: RootPVC, Until: "a Pod of the claim is bound to this member's node"},
	})},
	{Title: "The claim of a promise without a disk is assigned to this member", When: []fact{alone, diskless}, Rows: []row{
		{Phase: Promised, When: []fact{labelledElsewhere}, Owner: RootPVC, Until: "the other member releases the promise"},
		{Phase: Placing, When: []fact{not(labelledHere), podHere, not(rootDeleting)}, Step: Label, Owner: RootPVC},
		{Phase: Placing, When: []fact{not(labelledHere), kept}, Step: Label, Owner: RootPVC},
		{Phase: Unplacing, When: []fact{not(labelledHere)}, Step: Unplace, Owner: RootPVC},
	}},
	{Title: "A Pod waits for a promise's disk, which this member must provision", When: []fact{alone, diskless, not(hasClaim), podHere, not(rootDeleting)}, Rows: []row{
		{Phase: Placing, When: []fact{sourceAway}, Owner: RootPVC, Reasons: awaySources, Report: problem.ReportSourceAway, Until: "the data source is ready, or the claim is deleted"},
		{Phase: Placing, When: []fact{refused}, Owner: RootPVC, Reasons: classReasons + ", " + refusals, Report: problem.ReportRefused, Until: "the cause of the refusal changes"},
		{Phase: Placing, When: []fact{sourceRefused}, Owner: RootPVC, Reasons: sources, Report: problem.ReportSource, Until: "the claim's data source changes, or the claim is deleted"},
		{Phase: Placing, When: []fact{not(namespaced)}, Owner: RootPVC, Until: "leaf_namespace creates the namespace"},
		{Phase: Unconfirmed, When: []fact{maybeElsewhere}, Owner: RootPVC, Reasons: v1alpha1.ReasonPlacementUnconfirmed, Report: problem.ReportMaybeElsewhere, Until: askedAgain},
		{Phase: Placing, Step: CreateClaim, Owner: RootPVC},
	}},
	{Title: "A promise without a disk and its claim are assigned to this member", When: []fact{alone, diskless}, Rows: []row{
		{Phase: Unplacing, When: []fact{not(hasClaim)}, Step: Unlabel, Owner: RootPVC},
		{Phase: Withdrawing, When: []fact{claimUnbound, sourceLost}, Step: Withdraw, Owner: RootPVC},
		{Phase: Mismatched, When: []fact{unlike}, Owner: RootPVC, Reasons: v1alpha1.ReasonSourceMismatch, Report: problem.ReportUnlike, Until: "the claim is gone"},
		{Phase: Lost, When: []fact{not(claimUnbound), vanished}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost, Report: problem.ReportVanished, Until: "the leaf claim is gone, or the volume exists again"},
		{Phase: Lost, When: []fact{volumeLost}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost, Report: problem.ReportProvisionedLost, Until: "the leaf claim or the claim is gone, or the leaf claim is bound again"},
		{Phase: Provisioned, When: []fact{not(claimUnbound), not(provisionedDeleting)}, Owner: RootPVC, Until: "leaf_pv fulfills the promise"},
		{Phase: Withdrawing, When: []fact{claimUnbound, not(podHere)}, Step: Withdraw, Owner: RootPVC},
		{Phase: Terminating, When: []fact{provisionedDeleting}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeTerminating, Report: problem.ReportProvisionedTerminating, Until: "the claim is gone"},
		{Phase: Provisioning, Owner: RootPVC, Reasons: failures, Report: problem.ReportFailure, Until: "the member provisions the disk, or no Pod uses the claim"},
	}},
	{Title: "A promise that is not assigned to a member", When: []fact{placeless, not(abandoned)}, Rows: []row{
		{Phase: Ending, When: []fact{ended, either(not(hostDeleting), finalizer)}, Step: DropPromise, Owner: HostVolume},
		{Phase: Ending, When: []fact{hostDeleting, finalizer, free}, Step: DropFinalizer, Owner: HostVolume},
		{Phase: Ending, When: []fact{unwanted}, Step: DropPromise, Owner: HostVolume},
		{Phase: Promised, Owner: RootPVC, Until: "a Pod that uses it is bound to a node"},
	}},
	{Title: "A volume or a promise that an admin has abandoned", When: []fact{abandoned}, Rows: []row{
		{Phase: Abandoned, When: []fact{movable}, Step: FreePromise, Owner: HostVolume, Reasons: v1alpha1.ReasonAbandoned},
		{Phase: Abandoned, When: []fact{either(ended, unclaimed), not(hostDeleting)}, Step: DeleteHost, Owner: HostVolume},
		{Phase: Abandoned, When: []fact{either(finalizer, copied)}, Step: AbandonHost, Owner: HostVolume, Reasons: v1alpha1.ReasonAbandoned},
	}},
	{Title: "A promise without a disk that is assigned to this member", When: []fact{unfulfilled}, Rows: []row{
		{Phase: Ending, When: []fact{not(abandoned), finalizer, ended}, Step: EndPromise, Owner: RootPV},
		{Phase: Ending, When: []fact{not(abandoned), finalizer, hostDeleting, free}, Step: DropFinalizer, Owner: RootPV},
		{Phase: Promised, Owner: RootPVC, Until: "the member has provisioned the disk, or no Pod uses it"},
	}},
	{Title: "A promise that is being released, because no Pod used its disk", When: []fact{scratch, not(abandoned), releasing}, Rows: []row{
		{Phase: Mirrored, When: []fact{unguarded}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Holding, When: []fact{hasLeaf, leafDelete, either(not(destroyed), saved), either(not(terminating), claimed)}, Step: SetRetain, Owner: LeafPV},
		{Phase: Releasing, When: []fact{either(not(hasLeaf), leafDelete), claimed, not(claimDeleting)}, Step: DeleteUnused, Owner: RootPV},
		{Phase: Releasing, When: []fact{not(hasLeaf), not(claimed)}, Step: Unfulfil, Owner: RootPV},
		{Phase: Releasing, When: []fact{either(not(hasLeaf), leafDelete)}, Owner: RootPV, Until: "the leaf claim and the leaf PV are gone"},
		{Phase: Idle, When: []fact{used}, Step: Unmark, Owner: RootPV},
		{Phase: Idle, When: []fact{restoredMark}, Step: Unmark, Owner: RootPV},
		{Phase: Releasing, When: []fact{consumed, destroyed}, Step: SetDeleteUnused, Owner: RootPV},
		{Phase: Idle, When: []fact{hasLeaf}, Owner: RootPV, Reasons: v1alpha1.ReasonReleaseRefused, Report: problem.ReportKept, Until: "the policies change, or a Pod uses it"},
	}},
}
