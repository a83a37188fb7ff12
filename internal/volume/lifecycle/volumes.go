package lifecycle

import (
	"slices"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/volume/problem"
)

// volumes contains the sections for volumes that exist, or existed, in both modes.
var volumes = []section{
	{Title: "Two host PVs represent it", When: []fact{twin}, Rows: []row{
		{Phase: Holding, When: []fact{stamped, not(leafRetain)}, Step: SetRetain, Owner: LeafPV},
		{Phase: Retained, When: []fact{hostDeleting, finalizer}, Step: DropKept, Owner: RootPV},
		{Phase: Mismatched, When: []fact{bound, not(held)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: problem.ReportTwins, Until: "one of the two host PVs is gone"},
		{Phase: Mismatched, Owner: RootPV, Reasons: v1alpha1.ReasonVolumeMismatch, Report: problem.ReportTwins, Until: "one of the two host PVs is gone"},
	}},
	{Title: "An admin's host PV requests it, but Xylem has not recorded that PV", When: []fact{not(mirrored)}, Rows: []row{
		{Phase: Importing, When: []fact{importable}, Step: Import, Owner: LeafPV},
		{Phase: Importing, When: []fact{imports}, Owner: RootPVC, Reasons: "AdoptionRefused, ConsentMissing", Report: problem.ReportUnimportable, Until: "the host PV may adopt the volume, or the claim is deleted"},
	}},
	{Title: "An admin's host PV represents it, and no claim has used it yet", When: []fact{untaken}, Rows: []row{
		{Phase: Importing, When: []fact{not(hostDeleting), not(abandoned), takeable}, Step: Take, Owner: LeafPV},
		{Phase: Importing, When: []fact{hostDeleting, finalizer, either(free, ended)}, Step: DropKept, Owner: RootPV},
		{Phase: Importing, When: []fact{bound, not(rootDeleting)}, Owner: RootPVC, Reasons: "AdoptionRefused, ConsentMissing", Report: problem.ReportUntaken, Until: "the host PV may adopt the volume, or the claim is deleted"},
		{Phase: Importing, Owner: LeafPV, Reasons: "AdoptionRefused, ConsentMissing", Report: problem.ReportUntaken, Until: "the host PV may adopt the volume, or is deleted"},
	}},

	{Title: "A claim that the host may have lost in a restore used it last: retain it", When: []fact{rescued, not(abandoned)}, Rows: []row{
		{Phase: Holding, Step: UpdateHost, Owner: LeafPV},
	}},
	{Title: "Its claim is gone: retain the volume if it must outlive the claim", When: []fact{not(hasRoot)}, Rows: []row{
		{Phase: Holding, When: []fact{not(mirrored), replaced, unkept}, Step: Secure, Owner: LeafPV},
		{Phase: Holding, When: []fact{not(stamped), held, mayBeKnown, unsecured}, Step: Stamp, Owner: LeafPV},
		{Phase: Holding, When: []fact{mirrored, not(abandoned), stamped, not(leafRetain), either(retained, freed, heldByAnother, cloned)}, Step: SetRetain, Owner: LeafPV},
		{Phase: Adopting, When: []fact{not(mirrored), stamped, adoptable}, Step: Adopt, Owner: LeafPV},
		{Phase: Provisioned, When: []fact{not(mirrored), stamped, leafRetain, not(terminating), promisedHere}, Step: Fulfil, Owner: LeafPV},
		{Phase: Holding, When: []fact{not(mirrored), stamped, unkept}, Step: Secure, Owner: LeafPV},
		{Phase: Holding, When: []fact{unguarded, not(abandoned)}, Step: UpdateHost, Owner: LeafPV},
	}},
	{Title: "A leaf claim of an earlier root still names it, but is not bound to it", When: []fact{left, not(abandoned)}, Rows: []row{
		{Phase: Ending, When: []fact{not(leftDeleting), leftOutlived}, Step: DeleteLeft, Owner: RootPVC},
	}},
	{Title: "The leaf claim of another root is bound to it", When: []fact{mirrored, not(abandoned)}, Rows: []row{
		{Phase: Holding, When: []fact{heldByAnother, not(stamped)}, Step: Stamp, Owner: LeafPV},
		{Phase: Ending, When: []fact{finalizer, outlived, leafRetain}, Step: DeleteStale, Owner: RootPV},
		{Phase: Free, When: []fact{finalizer, not(ended), hostDeleting, free}, Step: DropKept, Owner: RootPV},
	}},
	{Title: "Its claim is gone, and its host PV has ended", When: []fact{not(hasRoot), ended}, Rows: []row{
		{Phase: Destroying, When: []fact{not(abandoned), not(finalizer), not(hostDeleting), not(copied), destroyed, not(hasLeaf), not(claimed)}, Step: DropHost, Owner: RootPV},
		{Phase: Retained, When: []fact{either(abandoned, not(finalizer))}, Owner: RootPV, Until: "the host PV is gone"},
		{Phase: Ending, When: []fact{either(copied, cloned)}, Owner: RootPV, Reasons: v1alpha1.ReasonStillNeeded, Report: problem.ReportNeeded, Until: "shared_pv has removed the copies, and the claims have their disks or are gone"},
		{Phase: Destroying, When: []fact{destroyed, not(hasLeaf), not(claimed)}, Step: DropHost, Owner: RootPV},
		{Phase: Destroying, When: []fact{destroyed, hasLeaf, not(terminating), not(leafDelete)}, Step: SetDelete, Owner: RootPV},
		{Phase: Ending, When: []fact{claimed, claimDeleting}, Owner: RootPV, Until: "the leaf claim is gone"},
		{Phase: Ending, When: []fact{claimed, mayDelete}, Step: DeleteClaim, Owner: RootPV},
		{Phase: Retained, When: []fact{not(destroyed), hostDeleting, either(not(claimed), not(recreated))}, Step: DropKept, Owner: RootPV},
		{Phase: Mirrored, When: []fact{outdated}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Retained, When: []fact{not(claimed), unsupported}, Owner: RootPV, Reasons: v1alpha1.ReasonReclaimPolicyUnsupported, Report: problem.ReportUnsupported, Until: "the host PV changes"},
		{Phase: Retained, When: []fact{not(claimed), keptUnused}, Owner: RootPV, Reasons: v1alpha1.ReasonReleaseRefused, Report: problem.ReportKeptUnused, Until: "the host PV changes"},
		{Phase: Destroying, When: []fact{destroyed}, Owner: RootPV, Until: "the leaf PV is gone"},
		{Phase: Retained, Owner: RootPV, Until: "the host PV changes"},
	}},
	{Title: "Its claim is gone, and a new claim with the same name requests it", When: []fact{not(hasRoot), hasClaim, not(claimDeleting), asked}, Rows: slices.Concat([]row{
		{Phase: Adopting, When: []fact{not(asks)}, Owner: RootPVC, Until: "that host PV is gone"},
	}, adopting(), []row{
		{Phase: Adopting, Step: AdoptClaim, Owner: RootPVC},
	})},
	{Title: "Its claim is gone, and its leaf claim remains", When: []fact{not(hasRoot), hasClaim}, Rows: []row{
		{Phase: Withdrawing, When: []fact{claimDeleting}, Owner: RootPVC, Until: "the leaf claim is gone"},
		{Phase: Withdrawing, When: []fact{claimUnbound}, Step: Withdraw, Owner: RootPVC},
		{Phase: Ending, When: []fact{not(mirrored), not(replaced), not(hasLeaf), not(claimBound)}, Step: DeleteLost, Owner: RootPVC},
		{Phase: Ending, When: []fact{not(mirrored), not(replaced), held, not(stamped), not(mayBeKnown)}, Step: DestroyUnmirrored, Owner: RootPVC},
		{Phase: Ending, When: []fact{not(mirrored), replaced, held, stamped}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeReplaced, Report: problem.ReportHeldByEarlier, Until: "the earlier host PV is released"},
		{Phase: Ending, When: []fact{not(mirrored), held, stamped, leafRetain, either(not(promisedHere), terminating)}, Step: DeleteRetained, Owner: RootPVC},
		{Phase: Ending, Owner: RootPVC, Until: "the host PV is released, or the leaf PV changes"},
	}},
	{Title: "Its claim is gone, and nothing is left to do", When: []fact{not(hasRoot)}, Rows: []row{
		{Phase: Mirrored, When: []fact{outdated, not(abandoned)}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Orphaned, When: []fact{not(mirrored), stamped}, Owner: LeafPV, Reasons: v1alpha1.ReasonOrphanedVolume, Until: "the member's admin deletes it, or a claim may adopt it"},
		{Phase: Free, When: []fact{mirrored}, Owner: RootPV, Until: "a claim is bound to it, or it is released"},
		{Phase: Foreign, Until: "it is related to this host"},
	}},

	{Title: "Its host PV has ended, and its claim is, or will be, bound to another volume", When: []fact{ended, not(own), not(abandoned), finalizer}, Rows: []row{
		{Phase: Ending, When: []fact{either(copied, cloned)}, Owner: RootPV, Reasons: v1alpha1.ReasonStillNeeded, Report: problem.ReportNeeded, Until: "shared_pv has removed the copies, and the claims have their disks or are gone"},
		{Phase: Destroying, When: []fact{destroyed, not(hasLeaf), not(claimed)}, Step: DropHost, Owner: RootPV},
		{Phase: Retained, When: []fact{not(destroyed), hostDeleting, either(not(claimed), not(recreated))}, Step: DropKept, Owner: RootPV},
	}},
	{Title: "Its claim is, or will be, bound to another volume", When: []fact{ours, not(own)}, Rows: []row{
		{Phase: Mismatched, When: []fact{not(mirrored), mistaken, unkept}, Step: Secure, Owner: LeafPV},
		{Phase: Mismatched, When: []fact{not(mirrored), mistaken}, Owner: LeafPV, Reasons: "VolumeReplaced, VolumeMismatch", Report: problem.Mistaken, Until: "the claim is deleted, or an admin resolves the mismatch"},
		{Phase: Surplus, When: []fact{elsewhere}, Owner: LeafPV, Reasons: v1alpha1.ReasonSurplusVolume, Report: problem.ReportSurplus, Until: "the claim is deleted, or is placed in this member"},
		{Phase: Provisioned, When: []fact{not(placed)}, Owner: RootPVC, Until: "root_pvc places the claim in this member"},
	}},
	{Title: "Its host PV has ended, but its claim is still in the cache", When: []fact{own, ended}, Rows: []row{
		{Phase: Ending, Owner: RootPV, Until: "the cache shows that the claim is gone"},
	}},
	{Title: "It is not a copy of its claim's data source, and is not mirrored yet", When: []fact{ours, not(mirrored), held, unlike}, Rows: []row{
		{Phase: Mismatched, Owner: RootPVC, Until: "the claim is deleted; root_pvc reports the mismatch"},
	}},
	{Title: "Its claim will be bound to it: retain and mirror it", When: []fact{ours}, Rows: []row{
		{Phase: Reusing, When: []fact{not(releasing), not(held), stamped, not(leafRetain)}, Step: SetRetain, Owner: LeafPV},
		{Phase: Provisioned, When: []fact{not(mirrored), not(claimed), leafRetain, not(terminating), promised, promisedHere}, Step: Fulfil, Owner: LeafPV},
		{Phase: Reusing, When: []fact{bound, claimed, not(claimDeleting), not(held), stamped, not(terminating), not(leafBound)}, Step: Repoint, Owner: LeafPV},
		{Phase: Holding, When: []fact{not(releasing), provisioned, unsecured}, Step: Stamp, Owner: LeafPV},
		{Phase: Holding, When: []fact{unguarded, not(abandoned), either(releasing, provisioned, heldByAnother)}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Provisioned, When: []fact{not(mirrored), provisioned, not(terminating), promised, promisedHere}, Step: Fulfil, Owner: LeafPV},
		{Phase: Provisioned, When: []fact{not(mirrored), provisioned, not(terminating), not(promised)}, Step: CreateHost, Owner: LeafPV},
	}},
	{Title: "Its claim is not bound to it yet", When: []fact{not(bound)}, Rows: []row{
		{Phase: Mirrored, When: []fact{outdated, not(abandoned), provisioned}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Provisioning, When: []fact{not(mirrored)}, Owner: RootPVC, Until: "the leaf claim and the leaf PV are Bound to each other"},
		{Phase: Mirrored, Owner: RootPVC, Until: "the host binds the claim"},
	}},
	{Title: "Its claim is bound to it, and its disk is released when no Pod uses it", When: []fact{scratch, not(abandoned)}, Rows: []row{
		{Phase: Mirrored, When: []fact{placedHere, outdated, provisioned}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Idle, When: []fact{finalizer, used, marked}, Step: Unmark, Owner: RootPV},
	}},
	{Title: "Its claim is bound to it, and no Pod uses its disk any longer: release the disk", When: []fact{scratch, not(abandoned), finalizer, not(used), consumed, hasLeaf, destroyed}, Rows: []row{
		{Phase: Idle, When: []fact{not(dated)}, Step: MarkUnused, Owner: RootPV},
		{Phase: Idle, When: []fact{not(counted)}, Step: CountGrace, Owner: RootPV},
		{Phase: Idle, When: []fact{not(graceOver)}, Owner: RootPV, Until: "the grace period is over, or a Pod uses it"},
		{Phase: Idle, Step: MarkReleasing, Owner: RootPV},
	}},
	{Title: "Its claim is bound to it", Rows: []row{
		{Phase: Bound, When: []fact{claimDeleting}, Owner: RootPVC, Until: "the leaf claim is gone"},
		{Phase: Ending, When: []fact{rootDeleting}, Owner: RootPVC, Until: "the root claim is gone"},
		{Phase: Bound, When: []fact{not(placed)}, Step: Place, Owner: RootPVC},
		{Phase: Bound, When: []fact{not(placedHere)}, Owner: RootPVC, Reasons: v1alpha1.ReasonPlacedElsewhere, Report: problem.ReportElsewhere, Until: "the claim is placed in this member"},
		{Phase: Releasing, When: []fact{releasing}, Owner: RootPV, Until: "the disk is gone"},
		{Phase: Lost, When: []fact{not(hasLeaf), recreated}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeReplaced, Report: problem.ReportReplaced, Until: "the claim is deleted"},
		{Phase: Lost, When: []fact{not(hasLeaf)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost, Report: problem.ReportLost, Until: "the leaf PV exists again, or the claim is deleted"},
		{Phase: Bound, When: []fact{terminating}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeTerminating, Report: problem.ReportTerminating, Until: "the claim is deleted"},
		{Phase: InUse, When: []fact{heldByAnother, holderRoot}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: problem.ReportHolder, Until: "the other root claim is gone"},
		{Phase: Reusing, When: []fact{nameOccupied}, Owner: RootPVC, Until: "that leaf claim is gone"},
		{Phase: Reusing, When: []fact{not(hasClaim), refused}, Owner: RootPVC, Reasons: refusals, Report: problem.ReportRefused, Until: "the cause of the refusal changes"},
		{Phase: Reusing, When: []fact{not(hasClaim), not(namespaced)}, Owner: RootPVC, Until: "leaf_namespace creates the namespace"},
		{Phase: Reusing, When: []fact{not(hasClaim)}, Step: CreateClaim, Owner: RootPVC},
		{Phase: Reusing, When: []fact{claimUnbound, pointed}, Owner: RootPVC, Until: "the member binds the leaf claim"},
		{Phase: Withdrawing, When: []fact{claimUnbound}, Step: Withdraw, Owner: RootPVC},
		{Phase: Mismatched, When: []fact{not(claimed)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: problem.ReportMismatch, Until: "the claim is deleted, or an admin resolves the mismatch"},
		{Phase: Mismatched, When: []fact{lent, not(leafBound), not(stamped)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: problem.ReportUnstamped, Until: "the member's admin restores the stamp"},
		{Phase: InUse, When: []fact{lent, leafBound}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: problem.ReportInUse, Until: "the other claim is deleted"},
		{Phase: Lost, When: []fact{claimLost}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost, Report: problem.ReportClaimLost, Until: "the leaf claim or the claim is deleted"},
		{Phase: Reusing, When: []fact{slow}, Step: Touch, Owner: RootPVC},
		{Phase: Mirrored, When: []fact{outdated, not(abandoned), either(releasing, provisioned)}, Step: UpdateHost, Owner: LeafPV},
		{Phase: Bound, When: []fact{grown}, Step: Grow, Owner: RootPVC},
		{Phase: Bound, When: []fact{modified}, Step: Modify, Owner: RootPVC},
		{Phase: Bound, When: []fact{attributesFixed}, Owner: RootPVC, Reasons: v1alpha1.ReasonModifyUnsupported, Report: problem.ReportAttributesFixed, Until: "the claim names a class"},
		{Phase: Idle, When: []fact{scratch, not(abandoned), finalizer, not(used)}, Owner: RootPV, Reasons: v1alpha1.ReasonReleaseRefused, Report: problem.ReportKept, Until: "the policies change, or a Pod uses it"},
		{Phase: Bound, Owner: RootPVC, Until: "the claim changes"},
	}},
}
