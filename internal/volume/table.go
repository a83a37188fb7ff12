package volume

import "github.com/xylem-io/xylem/api/v1alpha1"

// Phases.
const (
	Foreign      Phase = "Foreign" // not ours
	Abandoned    Phase = "Abandoned"
	Promised     Phase = "Promised"
	Idle         Phase = "Idle"
	Releasing    Phase = "Releasing"
	Holding      Phase = "Holding"
	Mirrored     Phase = "Mirrored"
	Ending       Phase = "Ending"
	Destroying   Phase = "Destroying"
	Retained     Phase = "Retained"
	Free         Phase = "Free"
	Orphaned     Phase = "Orphaned"
	Adopting     Phase = "Adopting"
	Withdrawing  Phase = "Withdrawing"
	Mismatched   Phase = "Mismatched"
	InUse        Phase = "InUse" // by another claim in the member
	Surplus      Phase = "Surplus"
	Provisioned  Phase = "Provisioned"
	Provisioning Phase = "Provisioning"
	Reusing      Phase = "Reusing"
	Bound        Phase = "Bound"
	Lost         Phase = "Lost"
)

// table of a volume's life, in sections that are gone through one after the other. The first row
// holds whose conditions, and those of its section, are all met.
var table = []section{
	{title: "A promise that no member has", when: []fact{placeless}, rows: []row{
		{phase: Ending, when: []fact{ended, either(not(hostDeleting), finalizer)}, step: DropPromise, owner: HostVolume},
		{phase: Ending, when: []fact{hostDeleting, finalizer, free}, step: DropFinalizer, owner: HostVolume},
		{phase: Abandoned, when: []fact{movable, taken}, step: Unplace, owner: HostVolume},
		{phase: Ending, when: []fact{unwanted}, step: DropPromise, owner: HostVolume},
		{phase: Promised, owner: RootPVC, until: "a Pod that uses it has a node"},
	}},
	{title: "A volume, or a promise that a member has, which an admin gives up", when: []fact{abandoned}, rows: []row{
		{phase: Abandoned, when: []fact{movable}, step: LetGo, owner: HostVolume, told: v1alpha1.ReasonAbandoned},
		{phase: Abandoned, when: []fact{either(ended, unclaimed), not(hostDeleting)}, step: DeleteHost, owner: HostVolume},
		{phase: Abandoned, when: []fact{finalizer}, step: ReleaseHost, owner: HostVolume, told: v1alpha1.ReasonAbandoned},
	}},
	{title: "A promise without a disk that this member has", when: []fact{unfulfilled}, rows: []row{
		{phase: Ending, when: []fact{not(abandoned), finalizer, ended}, step: EndPromise, owner: RootPV},
		{phase: Ending, when: []fact{not(abandoned), finalizer, hostDeleting, free}, step: DropFinalizer, owner: RootPV},
		{phase: Promised, owner: RootPVC, until: "the member has made the disk, or no Pod uses it"},
	}},
	{title: "A promise whose disk goes with its last Pod, and is being released", when: []fact{scratch, not(abandoned)}, rows: []row{
		{phase: Mirrored, when: []fact{releasing, unguarded}, step: KeepHost, owner: LeafPV},
		{phase: Releasing, when: []fact{releasing, either(not(hasLeaf), leafDelete), claimed, not(claimDeleting)}, step: DeleteUnused, owner: RootPV},
		{phase: Releasing, when: []fact{releasing, not(hasLeaf), not(claimed)}, step: Unfulfil, owner: RootPV},
		{phase: Releasing, when: []fact{releasing, either(not(hasLeaf), leafDelete)}, owner: RootPV, until: "leaf claim and leaf PV are gone"},
		{phase: Idle, when: []fact{either(finalizer, releasing), used, either(marked, releasing)}, step: Unmark, owner: RootPV},
		{phase: Releasing, when: []fact{releasing, consumed, destroyed}, step: Release, owner: RootPV},
		{phase: Idle, when: []fact{releasing, consumed, hasLeaf}, owner: RootPV, told: v1alpha1.ReasonReleaseRefused, tell: (*Snapshot).tellKept, until: "the policies change, or a Pod uses it"},
	}},

	{title: "Two host PVs represent it", when: []fact{twin}, rows: []row{
		{phase: Holding, when: []fact{stamped, not(leafRetain)}, step: Hold, owner: LeafPV},
		{phase: Retained, when: []fact{hostDeleting, finalizer}, step: DropFinalizer, owner: RootPV},
		{phase: Mismatched, when: []fact{bound, not(held)}, owner: RootPVC, told: v1alpha1.ReasonVolumeMismatch, tell: (*Snapshot).tellTwins, until: "one of the two is gone"},
		{phase: Mismatched, owner: RootPV, told: v1alpha1.ReasonVolumeMismatch, tell: (*Snapshot).tellTwins, until: "one of the two is gone"},
	}},

	{title: "Its claim is gone: what is to outlive it is held", when: []fact{not(hasRoot)}, rows: []row{
		{phase: Holding, when: []fact{not(mirrored), replaced, unkept}, step: Keep, owner: LeafPV},
		{phase: Holding, when: []fact{not(stamped), held, mayBeKnown, unheld}, step: Stamp, owner: LeafPV},
		{phase: Holding, when: []fact{mirrored, not(abandoned), stamped, not(leafRetain), either(retained, freed, heldByAnother)}, step: Hold, owner: LeafPV},
		{phase: Adopting, when: []fact{not(mirrored), stamped, adoptable}, step: Adopt, owner: LeafPV},
		{phase: Provisioned, when: []fact{not(mirrored), stamped, leafRetain, not(terminating), promisedHere}, step: Fulfil, owner: LeafPV},
		{phase: Holding, when: []fact{not(mirrored), stamped, unkept}, step: Keep, owner: LeafPV},
		{phase: Holding, when: []fact{unguarded, not(abandoned)}, step: KeepHost, owner: LeafPV},
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
		{phase: Mirrored, when: []fact{outdated}, step: KeepHost, owner: LeafPV},
		{phase: Retained, when: []fact{not(claimed), unsupported}, owner: RootPV, told: v1alpha1.ReasonReclaimPolicyUnsupported, tell: (*Snapshot).tellUnsupported, until: "the host PV changes"},
		{phase: Destroying, when: []fact{destroyed}, owner: RootPV, until: "the leaf PV is gone"},
		{phase: Retained, owner: RootPV, until: "the host PV changes"},
	}},
	{title: "Its claim is gone, and its leaf claim is left", when: []fact{not(hasRoot), hasClaim}, rows: []row{
		{phase: Withdrawing, when: []fact{claimDeleting}, owner: RootPVC, until: "the leaf claim is gone"},
		{phase: Adopting, when: []fact{asked}, step: AdoptClaim, owner: RootPVC},
		{phase: Withdrawing, when: []fact{claimUnbound}, step: Withdraw, owner: RootPVC},
		{phase: Ending, when: []fact{not(mirrored), not(replaced), not(hasLeaf), not(claimBound)}, step: DeleteLost, owner: RootPVC},
		{phase: Ending, when: []fact{not(mirrored), not(replaced), held, not(stamped), not(mayBeKnown)}, step: DestroyUnmirrored, owner: RootPVC},
		{phase: Ending, when: []fact{not(mirrored), replaced, held, stamped}, owner: RootPVC, told: v1alpha1.ReasonVolumeReplaced, tell: (*Snapshot).tellHeldByEarlier, until: "the earlier host PV is released"},
		{phase: Ending, when: []fact{not(mirrored), held, stamped, leafRetain, not(promisedHere)}, step: DeleteRetained, owner: RootPVC},
		{phase: Ending, owner: RootPVC, until: "the host PV is released, or the leaf PV changes"},
	}},
	{title: "Its claim is gone, and nothing is left to do", when: []fact{not(hasRoot)}, rows: []row{
		{phase: Mirrored, when: []fact{outdated, not(abandoned)}, step: KeepHost, owner: LeafPV},
		{phase: Orphaned, when: []fact{not(mirrored), stamped}, owner: LeafPV, told: v1alpha1.ReasonOrphanedVolume, until: "the member's admin deletes it, or a claim may have it"},
		{phase: Free, when: []fact{mirrored}, owner: RootPV, until: "a claim is bound to it, or it is released"},
		{phase: Foreign, until: "it has anything to do with this host"},
	}},

	{title: "Its host PV has ended, and its claim has another volume", when: []fact{ended, not(own), not(abandoned), finalizer}, rows: []row{
		{phase: Destroying, when: []fact{destroyed, not(hasLeaf), not(claimed)}, step: DropHost, owner: RootPV},
		{phase: Retained, when: []fact{not(destroyed), hostDeleting, either(not(claimed), not(recreated))}, step: DropFinalizer, owner: RootPV},
	}},
	{title: "Its claim has another volume, or is to have one", when: []fact{ours, not(own)}, rows: []row{
		{phase: Mismatched, when: []fact{not(mirrored), mistaken, unkept}, step: Keep, owner: LeafPV},
		{phase: Mismatched, when: []fact{not(mirrored), mistaken}, owner: LeafPV, told: "VolumeReplaced, VolumeMismatch", tell: (*Snapshot).mistaken, until: "the claim goes, or an admin repairs it"},
		{phase: Surplus, when: []fact{elsewhere}, owner: LeafPV, told: v1alpha1.ReasonSurplusVolume, tell: (*Snapshot).tellSurplus, until: "the claim goes, or is placed here"},
		{phase: Provisioned, when: []fact{not(placed)}, owner: RootPVC, until: "root_pvc places the claim here"},
	}},
	{title: "Its host PV has ended, and the cache still has its claim", when: []fact{own, ended}, rows: []row{
		{phase: Ending, owner: RootPV, until: "the cache shows that the claim is gone"},
	}},
	{title: "Its claim is to have it: it is held, and mirrored", when: []fact{ours}, rows: []row{
		{phase: Reusing, when: []fact{not(releasing), not(held), stamped, not(leafRetain)}, step: Hold, owner: LeafPV},
		{phase: Provisioned, when: []fact{not(mirrored), not(claimed), leafRetain, not(terminating), promised, promisedHere}, step: Fulfil, owner: LeafPV},
		{phase: Reusing, when: []fact{bound, claimed, not(claimDeleting), not(held), stamped, not(terminating), not(leafBound)}, step: Repoint, owner: LeafPV},
		{phase: Holding, when: []fact{not(releasing), provisioned, unheld}, step: Stamp, owner: LeafPV},
		{phase: Holding, when: []fact{unguarded, not(abandoned), either(releasing, provisioned, heldByAnother)}, step: KeepHost, owner: LeafPV},
		{phase: Provisioned, when: []fact{not(mirrored), provisioned, not(terminating), promised, promisedHere}, step: Fulfil, owner: LeafPV},
		{phase: Provisioned, when: []fact{not(mirrored), provisioned, not(terminating), not(promised)}, step: CreateHost, owner: LeafPV},
	}},
	{title: "Its claim is not bound to it yet", when: []fact{not(bound)}, rows: []row{
		{phase: Mirrored, when: []fact{outdated, not(abandoned), provisioned}, step: KeepHost, owner: LeafPV},
		{phase: Provisioning, when: []fact{not(mirrored)}, owner: RootPVC, until: "leaf claim and leaf PV are bound to each other"},
		{phase: Mirrored, owner: RootPVC, until: "the host binds the claim"},
	}},
	{title: "Its claim is bound to it", rows: []row{
		{phase: Idle, when: []fact{scratch, not(abandoned), finalizer, not(used), consumed, hasLeaf, destroyed}, step: Release, owner: RootPV},
		{phase: Bound, when: []fact{claimDeleting}, owner: RootPVC, until: "the leaf claim is gone"},
		{phase: Ending, when: []fact{rootDeleting}, owner: RootPVC, until: "the root claim is gone"},
		{phase: Bound, when: []fact{not(placed)}, step: Place, owner: RootPVC},
		{phase: Bound, when: []fact{not(placedHere)}, owner: RootPVC, told: v1alpha1.ReasonPlacedElsewhere, tell: (*Snapshot).tellElsewhere, until: "the claim is placed here"},
		{phase: Releasing, when: []fact{releasing}, owner: RootPV, until: "the disk is gone"},
		{phase: Lost, when: []fact{not(hasLeaf), recreated}, owner: RootPVC, told: v1alpha1.ReasonVolumeReplaced, tell: (*Snapshot).tellReplaced, until: "the claim goes"},
		{phase: Lost, when: []fact{not(hasLeaf)}, owner: RootPVC, told: v1alpha1.ReasonVolumeLost, tell: (*Snapshot).tellLost, until: "the leaf PV is back, or the claim goes"},
		{phase: Bound, when: []fact{terminating}, owner: RootPVC, told: v1alpha1.ReasonVolumeTerminating, tell: (*Snapshot).tellTerminating, until: "the claim goes"},
		{phase: InUse, when: []fact{heldByAnother, holderRoot}, owner: RootPVC, told: v1alpha1.ReasonVolumeMismatch, tell: (*Snapshot).tellHolder, until: "the other root claim is gone"},
		{phase: Reusing, when: []fact{not(hasClaim)}, step: CreateClaim, owner: RootPVC},
		{phase: Reusing, when: []fact{claimUnbound, pointed}, owner: RootPVC, until: "the member binds the leaf claim"},
		{phase: Withdrawing, when: []fact{claimUnbound}, step: Withdraw, owner: RootPVC},
		{phase: Mismatched, when: []fact{not(claimed)}, owner: RootPVC, told: v1alpha1.ReasonVolumeMismatch, tell: (*Snapshot).tellMismatch, until: "the claim goes, or an admin repairs it"},
		{phase: Mismatched, when: []fact{lent, not(leafBound), not(stamped)}, owner: RootPVC, told: v1alpha1.ReasonVolumeMismatch, tell: (*Snapshot).tellUnstamped, until: "an admin repairs it"},
		{phase: InUse, when: []fact{lent, leafBound}, owner: RootPVC, told: v1alpha1.ReasonVolumeMismatch, tell: (*Snapshot).tellInUse, until: "the other claim goes"},
		{phase: Lost, when: []fact{claimLost}, owner: RootPVC, told: v1alpha1.ReasonVolumeLost, tell: (*Snapshot).tellClaimLost, until: "the leaf claim or the claim goes"},
		{phase: Reusing, when: []fact{slow}, step: Nudge, owner: RootPVC},
		{phase: Mirrored, when: []fact{outdated, not(abandoned), either(releasing, provisioned)}, step: KeepHost, owner: LeafPV},
		{phase: Bound, when: []fact{grown}, step: Grow, owner: RootPVC},
		{phase: Idle, when: []fact{scratch, not(abandoned), finalizer, not(used), consumed}, owner: RootPV, told: v1alpha1.ReasonReleaseRefused, tell: (*Snapshot).tellKept, until: "the policies change, or a Pod uses it"},
		{phase: Bound, when: []fact{modified}, owner: RootPVC, told: v1alpha1.ReasonModifyUnsupported, tell: (*Snapshot).tellModified, until: "the claim asks for the class that it has"},
		{phase: Bound, owner: RootPVC, until: "the claim changes"},
	}},
}
