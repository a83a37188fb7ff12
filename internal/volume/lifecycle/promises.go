package lifecycle

import (
	"slices"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/volume"
)

// promises has the sections of promise mode that apply until the promise is fulfilled.
var promises = []section{
	{title: "A claim that has no PersistentVolume, as the controller promise observes it", when: []fact{unobserved}, rows: []row{
		{phase: Unpromised, when: []fact{rootDeleting}, owner: Promise, until: "the claim is gone"},
		{phase: Unpromised, when: []fact{not(ofPromises)}, owner: Promise, until: "the class is one of Xylem's, of promise mode"},
		{phase: Unpromised, when: []fact{unpromisable}, owner: Promise, until: "the claim is re-created: host_claim reports why"},
		{phase: Unpromised, when: []fact{unrecordedYet}, owner: Promise, until: "source records where its data source is: host_claim reports why not"},
		{phase: Unpromised, step: CreatePromise, owner: Promise},
	}},
	{title: "An admin abandons the promise, and host_volume has not yet taken it from its member", when: []fact{alone, diskless, givenUp}, rows: []row{
		{phase: Terminating, when: []fact{promiseDeleting, either(podHere, hasClaim)}, owner: RootPVC, reason: v1alpha1.ReasonVolumeTerminating, report: (*volume.Observed).ReportPromiseTerminating, until: "the claim is gone"},
		{phase: Abandoned, owner: HostVolume, until: "host_volume has taken it"},
	}},
	{title: "The claim of a promise without a disk, placed in another member", when: []fact{alone, diskless, placedAway}, rows: []row{
		{phase: Withdrawing, when: []fact{claimUnbound}, step: Withdraw, owner: RootPVC},
		{phase: Unplacing, when: []fact{not(hasClaim), labelledHere}, step: Unlabel, owner: RootPVC},
		{phase: Promised, when: []fact{either(podHere, hasClaim)}, owner: RootPVC, reason: v1alpha1.ReasonPlacedElsewhere, report: (*volume.Observed).ReportElsewhere, until: "the claim is placed here, or nowhere"},
		{phase: Promised, owner: RootPVC, until: "a Pod of the claim is bound to this member's node"},
	}},
	{title: "The claim of a promise without a disk, placed nowhere", when: []fact{alone, diskless, not(placed)}, rows: slices.Concat([]row{
		{phase: Promised, when: []fact{podHere, not(hasClaim), not(rootDeleting), sourceAway}, owner: RootPVC, reason: awaySources, report: (*volume.Observed).ReportSourceAway, until: "the data source is ready here, or the Pod goes"},
		{phase: Unconfirmed, when: []fact{podHere, not(rootDeleting), maybeElsewhere}, owner: RootPVC, reason: v1alpha1.ReasonPlacementUnconfirmed, report: (*volume.Observed).ReportMaybeElsewhere, until: askedAgain},
		{phase: Placing, when: []fact{podHere, not(rootDeleting)}, step: Place, owner: RootPVC},
	}, unrecorded(kept), []row{
		{phase: Withdrawing, when: []fact{claimUnbound}, step: Withdraw, owner: RootPVC},
		{phase: Surplus, when: []fact{hasClaim}, owner: RootPVC, reason: v1alpha1.ReasonSurplusVolume, report: (*volume.Observed).ReportTaken, until: "a Pod of the claim is bound here, or the leaf claim is gone"},
		{phase: Promised, when: []fact{labelledElsewhere}, owner: RootPVC, until: "the other member releases the promise"},
		{phase: Promised, when: []fact{not(labelledHere)}, owner: RootPVC, until: "a Pod of the claim is bound to this member's node"},
	})},
	{title: "The claim of a promise without a disk, which this member is to have", when: []fact{alone, diskless}, rows: []row{
		{phase: Promised, when: []fact{labelledElsewhere}, owner: RootPVC, until: "the other member releases the promise"},
		{phase: Placing, when: []fact{not(labelledHere), podHere, not(rootDeleting)}, step: Label, owner: RootPVC},
		{phase: Placing, when: []fact{not(labelledHere), kept}, step: Label, owner: RootPVC},
		{phase: Unplacing, when: []fact{not(labelledHere)}, step: Unplace, owner: RootPVC},
	}},
	{title: "A Pod waits for the disk of a promise, which this member is to provision", when: []fact{alone, diskless, not(hasClaim), podHere, not(rootDeleting)}, rows: []row{
		{phase: Placing, when: []fact{sourceAway}, owner: RootPVC, reason: awaySources, report: (*volume.Observed).ReportSourceAway, until: "the data source is ready, or the claim goes"},
		{phase: Placing, when: []fact{refused}, owner: RootPVC, reason: "ClassNotFound, ClassKeepsOff, " + refusals, report: (*volume.Observed).ReportRefused, until: "what refuses it changes"},
		{phase: Placing, when: []fact{sourceRefused}, owner: RootPVC, reason: sources, report: (*volume.Observed).ReportSource, until: "its data source changes, or the claim goes"},
		{phase: Placing, when: []fact{not(namespaced)}, owner: RootPVC, until: "leaf_namespace creates the namespace"},
		{phase: Placing, step: CreateClaim, owner: RootPVC},
	}},
	{title: "The claim of a promise without a disk, which this member has", when: []fact{alone, diskless}, rows: []row{
		{phase: Unplacing, when: []fact{not(hasClaim)}, step: Unlabel, owner: RootPVC},
		{phase: Withdrawing, when: []fact{claimUnbound, sourceLost}, step: Withdraw, owner: RootPVC},
		{phase: Mismatched, when: []fact{unlike}, owner: RootPVC, reason: v1alpha1.ReasonSourceMismatch, report: (*volume.Observed).ReportUnlike, until: "the claim is gone"},
		{phase: Lost, when: []fact{not(claimUnbound), vanished}, owner: RootPVC, reason: v1alpha1.ReasonVolumeLost, report: (*volume.Observed).ReportVanished, until: "the leaf claim is gone, or its volume is back"},
		{phase: Provisioned, when: []fact{not(claimUnbound), not(provisionedDeleting)}, owner: RootPVC, until: "leaf_pv fulfils the promise"},
		{phase: Withdrawing, when: []fact{claimUnbound, not(podHere)}, step: Withdraw, owner: RootPVC},
		{phase: Terminating, when: []fact{provisionedDeleting}, owner: RootPVC, reason: v1alpha1.ReasonVolumeTerminating, report: (*volume.Observed).ReportProvisionedTerminating, until: "the claim is gone"},
		{phase: Provisioning, owner: RootPVC, reason: failures, report: (*volume.Observed).ReportFailure, until: "the member provisions the disk, or no Pod uses the claim"},
	}},
	{title: "A promise that no member has", when: []fact{placeless, not(abandoned)}, rows: []row{
		{phase: Ending, when: []fact{ended, either(not(hostDeleting), finalizer)}, step: DropPromise, owner: HostVolume},
		{phase: Ending, when: []fact{hostDeleting, finalizer, free}, step: DropFinalizer, owner: HostVolume},
		{phase: Ending, when: []fact{unwanted}, step: DropPromise, owner: HostVolume},
		{phase: Promised, owner: RootPVC, until: "a Pod that uses it has a node"},
	}},
	{title: "A volume, or a promise, that an admin abandons", when: []fact{abandoned}, rows: []row{
		{phase: Abandoned, when: []fact{movable}, step: FreePromise, owner: HostVolume, reason: v1alpha1.ReasonAbandoned},
		{phase: Abandoned, when: []fact{either(ended, unclaimed), not(hostDeleting)}, step: DeleteHost, owner: HostVolume},
		{phase: Abandoned, when: []fact{finalizer}, step: AbandonHost, owner: HostVolume, reason: v1alpha1.ReasonAbandoned},
	}},
	{title: "A promise without a disk that this member has", when: []fact{unfulfilled}, rows: []row{
		{phase: Ending, when: []fact{not(abandoned), finalizer, ended}, step: EndPromise, owner: RootPV},
		{phase: Ending, when: []fact{not(abandoned), finalizer, hostDeleting, free}, step: DropFinalizer, owner: RootPV},
		{phase: Promised, owner: RootPVC, until: "the member has made the disk, or no Pod uses it"},
	}},
	{title: "A promise that is being released, because no Pod used its disk", when: []fact{scratch, not(abandoned), releasing}, rows: []row{
		{phase: Mirrored, when: []fact{unguarded}, step: UpdateHost, owner: LeafPV},
		{phase: Holding, when: []fact{hasLeaf, leafDelete, not(destroyed), not(terminating)}, step: SetRetain, owner: LeafPV},
		{phase: Releasing, when: []fact{either(not(hasLeaf), leafDelete), claimed, not(claimDeleting)}, step: DeleteUnused, owner: RootPV},
		{phase: Releasing, when: []fact{not(hasLeaf), not(claimed)}, step: Unfulfil, owner: RootPV},
		{phase: Releasing, when: []fact{either(not(hasLeaf), leafDelete)}, owner: RootPV, until: "leaf claim and leaf PV are gone"},
		{phase: Idle, when: []fact{used}, step: Unmark, owner: RootPV},
		{phase: Releasing, when: []fact{consumed, destroyed}, step: SetDeleteUnused, owner: RootPV},
		{phase: Idle, when: []fact{hasLeaf}, owner: RootPV, reason: v1alpha1.ReasonReleaseRefused, report: (*volume.Observed).ReportKept, until: "the policies change, or a Pod uses it"},
	}},
	{title: "A promise that is marked as unused, and that a Pod uses again", when: []fact{scratch, not(abandoned)}, rows: []row{
		{phase: Idle, when: []fact{finalizer, used, marked}, step: Unmark, owner: RootPV},
	}},
}
