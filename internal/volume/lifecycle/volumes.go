package lifecycle

import (
	"slices"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/volume"
)

// volumes has the sections for volumes that exist, or existed, in both modes.
var volumes = []section{
	{title: "Two host PVs represent it", when: []fact{twin}, rows: []row{
		{phase: Holding, when: []fact{stamped, not(leafRetain)}, step: SetRetain, owner: LeafPV},
		{phase: Retained, when: []fact{hostDeleting, finalizer}, step: DropFinalizer, owner: RootPV},
		{phase: Mismatched, when: []fact{bound, not(held)}, owner: RootPVC, reason: v1alpha1.ReasonVolumeMismatch, report: (*volume.Observed).ReportTwins, until: "one of the two is gone"},
		{phase: Mismatched, owner: RootPV, reason: v1alpha1.ReasonVolumeMismatch, report: (*volume.Observed).ReportTwins, until: "one of the two is gone"},
	}},
	{title: "An admin's host PV requests it, and is not recorded", when: []fact{not(mirrored)}, rows: []row{
		{phase: Importing, when: []fact{importable}, step: Import, owner: LeafPV},
		{phase: Importing, when: []fact{imports}, owner: RootPVC, reason: "AdoptionRefused, ConsentMissing", report: (*volume.Observed).ReportUnimportable, until: "the volume may be used, or the claim goes"},
	}},
	{title: "A host PV that an admin created represents it, and no claim has it yet", when: []fact{untaken}, rows: []row{
		{phase: Importing, when: []fact{not(hostDeleting), not(abandoned), takeable}, step: Take, owner: LeafPV},
		{phase: Importing, when: []fact{hostDeleting, finalizer, either(free, ended)}, step: DropFinalizer, owner: RootPV},
		{phase: Importing, when: []fact{bound, not(rootDeleting)}, owner: RootPVC, reason: "AdoptionRefused, ConsentMissing", report: (*volume.Observed).ReportUntaken, until: "the volume may be used, or the claim goes"},
		{phase: Importing, owner: LeafPV, reason: "AdoptionRefused, ConsentMissing", report: (*volume.Observed).ReportUntaken, until: "the volume may be used, or the host PV goes"},
	}},

	{title: "Its claim is gone: what is to outlive it is held", when: []fact{not(hasRoot)}, rows: []row{
		{phase: Holding, when: []fact{not(mirrored), replaced, unkept}, step: Secure, owner: LeafPV},
		{phase: Holding, when: []fact{not(stamped), held, mayBeKnown, unsecured}, step: Stamp, owner: LeafPV},
		{phase: Holding, when: []fact{mirrored, not(abandoned), stamped, not(leafRetain), either(retained, freed, heldByAnother)}, step: SetRetain, owner: LeafPV},
		{phase: Adopting, when: []fact{not(mirrored), stamped, adoptable}, step: Adopt, owner: LeafPV},
		{phase: Provisioned, when: []fact{not(mirrored), stamped, leafRetain, not(terminating), promisedHere}, step: Fulfil, owner: LeafPV},
		{phase: Holding, when: []fact{not(mirrored), stamped, unkept}, step: Secure, owner: LeafPV},
		{phase: Holding, when: []fact{unguarded, not(abandoned)}, step: UpdateHost, owner: LeafPV},
	}},
	{title: "A leaf claim that is left of an earlier root names it, and does not have it", when: []fact{left, not(abandoned)}, rows: []row{
		{phase: Ending, when: []fact{not(leftDeleting), leftOutlived}, step: DeleteLeft, owner: RootPVC},
	}},
	{title: "The leaf claim of another root has it", when: []fact{mirrored, not(abandoned)}, rows: []row{
		{phase: Holding, when: []fact{heldByAnother, not(stamped)}, step: Stamp, owner: LeafPV},
		{phase: Ending, when: []fact{finalizer, outlived, leafRetain}, step: DeleteStale, owner: RootPV},
		{phase: Free, when: []fact{finalizer, not(ended), hostDeleting, free}, step: DropFinalizer, owner: RootPV},
	}},
	{title: "Its claim is gone, and its host PV has ended", when: []fact{not(hasRoot), ended}, rows: []row{
		{phase: Retained, when: []fact{either(abandoned, not(finalizer))}, owner: RootPV, until: "the host PV is gone"},
		{phase: Destroying, when: []fact{destroyed, not(hasLeaf), not(claimed)}, step: DropHost, owner: RootPV},
		{phase: Destroying, when: []fact{destroyed, hasLeaf, not(terminating), not(leafDelete)}, step: SetDelete, owner: RootPV},
		{phase: Ending, when: []fact{claimed, claimDeleting}, owner: RootPV, until: "the leaf claim is gone"},
		{phase: Ending, when: []fact{claimed, mayDelete}, step: DeleteClaim, owner: RootPV},
		{phase: Retained, when: []fact{not(destroyed), hostDeleting, either(not(claimed), not(recreated))}, step: DropFinalizer, owner: RootPV},
		{phase: Mirrored, when: []fact{outdated}, step: UpdateHost, owner: LeafPV},
		{phase: Retained, when: []fact{not(claimed), unsupported}, owner: RootPV, reason: v1alpha1.ReasonReclaimPolicyUnsupported, report: (*volume.Observed).ReportUnsupported, until: "the host PV changes"},
		{phase: Retained, when: []fact{not(claimed), keptUnused}, owner: RootPV, reason: v1alpha1.ReasonReleaseRefused, report: (*volume.Observed).ReportKeptUnused, until: "the host PV changes"},
		{phase: Destroying, when: []fact{destroyed}, owner: RootPV, until: "the leaf PV is gone"},
		{phase: Retained, owner: RootPV, until: "the host PV changes"},
	}},
	{title: "Its claim is gone, and a new claim with its name requests it", when: []fact{not(hasRoot), hasClaim, not(claimDeleting), asked}, rows: slices.Concat([]row{
		{phase: Adopting, when: []fact{not(asks)}, owner: RootPVC, until: "that host PV is gone"},
	}, adopting(), []row{
		{phase: Adopting, step: AdoptClaim, owner: RootPVC},
	})},
	{title: "Its claim is gone, and its leaf claim is left", when: []fact{not(hasRoot), hasClaim}, rows: []row{
		{phase: Withdrawing, when: []fact{claimDeleting}, owner: RootPVC, until: "the leaf claim is gone"},
		{phase: Withdrawing, when: []fact{claimUnbound}, step: Withdraw, owner: RootPVC},
		{phase: Ending, when: []fact{not(mirrored), not(replaced), not(hasLeaf), not(claimBound)}, step: DeleteLost, owner: RootPVC},
		{phase: Ending, when: []fact{not(mirrored), not(replaced), held, not(stamped), not(mayBeKnown)}, step: DestroyUnmirrored, owner: RootPVC},
		{phase: Ending, when: []fact{not(mirrored), replaced, held, stamped}, owner: RootPVC, reason: v1alpha1.ReasonVolumeReplaced, report: (*volume.Observed).ReportHeldByEarlier, until: "the earlier host PV is released"},
		{phase: Ending, when: []fact{not(mirrored), held, stamped, leafRetain, either(not(promisedHere), terminating)}, step: DeleteRetained, owner: RootPVC},
		{phase: Ending, owner: RootPVC, until: "the host PV is released, or the leaf PV changes"},
	}},
	{title: "Its claim is gone, and nothing is left to do", when: []fact{not(hasRoot)}, rows: []row{
		{phase: Mirrored, when: []fact{outdated, not(abandoned)}, step: UpdateHost, owner: LeafPV},
		{phase: Orphaned, when: []fact{not(mirrored), stamped}, owner: LeafPV, reason: v1alpha1.ReasonOrphanedVolume, until: "the member's admin deletes it, or a claim may have it"},
		{phase: Free, when: []fact{mirrored}, owner: RootPV, until: "a claim is bound to it, or it is released"},
		{phase: Foreign, until: "it has anything to do with this host"},
	}},

	{title: "Its host PV has ended, and its claim has another volume", when: []fact{ended, not(own), not(abandoned), finalizer}, rows: []row{
		{phase: Destroying, when: []fact{destroyed, not(hasLeaf), not(claimed)}, step: DropHost, owner: RootPV},
		{phase: Retained, when: []fact{not(destroyed), hostDeleting, either(not(claimed), not(recreated))}, step: DropFinalizer, owner: RootPV},
	}},
	{title: "Its claim has another volume, or will have one", when: []fact{ours, not(own)}, rows: []row{
		{phase: Mismatched, when: []fact{not(mirrored), mistaken, unkept}, step: Secure, owner: LeafPV},
		{phase: Mismatched, when: []fact{not(mirrored), mistaken}, owner: LeafPV, reason: "VolumeReplaced, VolumeMismatch", report: (*volume.Observed).Mistaken, until: "the claim goes, or an admin repairs it"},
		{phase: Surplus, when: []fact{elsewhere}, owner: LeafPV, reason: v1alpha1.ReasonSurplusVolume, report: (*volume.Observed).ReportSurplus, until: "the claim goes, or is placed here"},
		{phase: Provisioned, when: []fact{not(placed)}, owner: RootPVC, until: "root_pvc places the claim here"},
	}},
	{title: "Its host PV has ended, and the cache still has its claim", when: []fact{own, ended}, rows: []row{
		{phase: Ending, owner: RootPV, until: "the cache shows that the claim is gone"},
	}},
	{title: "It is not a copy of its claim's data source, and its claim has no volume yet", when: []fact{ours, not(mirrored), held, unlike}, rows: []row{
		{phase: Mismatched, owner: RootPVC, until: "the claim goes: root_pvc reports it"},
	}},
	{title: "Its claim is to have it: it is held, and mirrored", when: []fact{ours}, rows: []row{
		{phase: Reusing, when: []fact{not(releasing), not(held), stamped, not(leafRetain)}, step: SetRetain, owner: LeafPV},
		{phase: Provisioned, when: []fact{not(mirrored), not(claimed), leafRetain, not(terminating), promised, promisedHere}, step: Fulfil, owner: LeafPV},
		{phase: Reusing, when: []fact{bound, claimed, not(claimDeleting), not(held), stamped, not(terminating), not(leafBound)}, step: Repoint, owner: LeafPV},
		{phase: Holding, when: []fact{not(releasing), provisioned, unsecured}, step: Stamp, owner: LeafPV},
		{phase: Holding, when: []fact{unguarded, not(abandoned), either(releasing, provisioned, heldByAnother)}, step: UpdateHost, owner: LeafPV},
		{phase: Provisioned, when: []fact{not(mirrored), provisioned, not(terminating), promised, promisedHere}, step: Fulfil, owner: LeafPV},
		{phase: Provisioned, when: []fact{not(mirrored), provisioned, not(terminating), not(promised)}, step: CreateHost, owner: LeafPV},
	}},
	{title: "Its claim is not bound to it yet", when: []fact{not(bound)}, rows: []row{
		{phase: Mirrored, when: []fact{outdated, not(abandoned), provisioned}, step: UpdateHost, owner: LeafPV},
		{phase: Provisioning, when: []fact{not(mirrored)}, owner: RootPVC, until: "leaf claim and leaf PV are bound to each other"},
		{phase: Mirrored, owner: RootPVC, until: "the host binds the claim"},
	}},
	{title: "Its claim is bound to it, and its disk is released with the last Pod, which is gone", when: []fact{scratch, not(abandoned), finalizer, not(used), consumed, hasLeaf, destroyed}, rows: []row{
		{phase: Idle, when: []fact{not(dated)}, step: MarkUnused, owner: RootPV},
		{phase: Idle, when: []fact{not(counted)}, step: CountGrace, owner: RootPV},
		{phase: Idle, when: []fact{not(graceOver)}, owner: RootPV, until: "the grace period is over, or a Pod uses it"},
		{phase: Idle, step: MarkReleasing, owner: RootPV},
	}},
	{title: "Its claim is bound to it", rows: []row{
		{phase: Bound, when: []fact{claimDeleting}, owner: RootPVC, until: "the leaf claim is gone"},
		{phase: Ending, when: []fact{rootDeleting}, owner: RootPVC, until: "the root claim is gone"},
		{phase: Bound, when: []fact{not(placed)}, step: Place, owner: RootPVC},
		{phase: Bound, when: []fact{not(placedHere)}, owner: RootPVC, reason: v1alpha1.ReasonPlacedElsewhere, report: (*volume.Observed).ReportElsewhere, until: "the claim is placed here"},
		{phase: Releasing, when: []fact{releasing}, owner: RootPV, until: "the disk is gone"},
		{phase: Lost, when: []fact{not(hasLeaf), recreated}, owner: RootPVC, reason: v1alpha1.ReasonVolumeReplaced, report: (*volume.Observed).ReportReplaced, until: "the claim goes"},
		{phase: Lost, when: []fact{not(hasLeaf)}, owner: RootPVC, reason: v1alpha1.ReasonVolumeLost, report: (*volume.Observed).ReportLost, until: "the leaf PV is back, or the claim goes"},
		{phase: Bound, when: []fact{terminating}, owner: RootPVC, reason: v1alpha1.ReasonVolumeTerminating, report: (*volume.Observed).ReportTerminating, until: "the claim goes"},
		{phase: InUse, when: []fact{heldByAnother, holderRoot}, owner: RootPVC, reason: v1alpha1.ReasonVolumeMismatch, report: (*volume.Observed).ReportHolder, until: "the other root claim is gone"},
		{phase: Reusing, when: []fact{not(hasClaim), refused}, owner: RootPVC, reason: refusals, report: (*volume.Observed).ReportRefused, until: "what refuses it changes"},
		{phase: Reusing, when: []fact{not(hasClaim), not(namespaced)}, owner: RootPVC, until: "leaf_namespace creates the namespace"},
		{phase: Reusing, when: []fact{not(hasClaim)}, step: CreateClaim, owner: RootPVC},
		{phase: Reusing, when: []fact{claimUnbound, pointed}, owner: RootPVC, until: "the member binds the leaf claim"},
		{phase: Withdrawing, when: []fact{claimUnbound}, step: Withdraw, owner: RootPVC},
		{phase: Mismatched, when: []fact{not(claimed)}, owner: RootPVC, reason: v1alpha1.ReasonVolumeMismatch, report: (*volume.Observed).ReportMismatch, until: "the claim goes, or an admin repairs it"},
		{phase: Mismatched, when: []fact{lent, not(leafBound), not(stamped)}, owner: RootPVC, reason: v1alpha1.ReasonVolumeMismatch, report: (*volume.Observed).ReportUnstamped, until: "an admin repairs it"},
		{phase: InUse, when: []fact{lent, leafBound}, owner: RootPVC, reason: v1alpha1.ReasonVolumeMismatch, report: (*volume.Observed).ReportInUse, until: "the other claim goes"},
		{phase: Lost, when: []fact{claimLost}, owner: RootPVC, reason: v1alpha1.ReasonVolumeLost, report: (*volume.Observed).ReportClaimLost, until: "the leaf claim or the claim goes"},
		{phase: Reusing, when: []fact{slow}, step: Touch, owner: RootPVC},
		{phase: Mirrored, when: []fact{outdated, not(abandoned), either(releasing, provisioned)}, step: UpdateHost, owner: LeafPV},
		{phase: Bound, when: []fact{grown}, step: Grow, owner: RootPVC},
		{phase: Idle, when: []fact{scratch, not(abandoned), finalizer, not(used)}, owner: RootPV, reason: v1alpha1.ReasonReleaseRefused, report: (*volume.Observed).ReportKept, until: "the policies change, or a Pod uses it"},
		{phase: Bound, when: []fact{modified}, step: Modify, owner: RootPVC},
		{phase: Bound, when: []fact{attributesFixed}, owner: RootPVC, reason: v1alpha1.ReasonModifyUnsupported, report: (*volume.Observed).ReportAttributesFixed, until: "the claim names a class"},
		{phase: Bound, owner: RootPVC, until: "the claim changes"},
	}},
}
