package lifecycle

import (
	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/states"
)

// Steps.
const (
	CreatePromise     Step = "CreatePromise"
	Place             Step = "Place"
	Unplace           Step = "Unplace"
	Unselect          Step = "Unselect"
	SelectNode        Step = "SelectNode"
	Label             Step = "Label"
	Unlabel           Step = "Unlabel"
	Adopt             Step = "Adopt"
	AdoptClaim        Step = "AdoptClaim"
	Import            Step = "Import"
	Take              Step = "Take"
	CreateHost        Step = "CreateHost"
	Fulfil            Step = "Fulfil"
	UpdateHost        Step = "UpdateHost"
	FreePromise       Step = "FreePromise"
	DeleteHost        Step = "DeleteHost"
	AbandonHost       Step = "AbandonHost"
	DropPromise       Step = "DropPromise"
	DropHost          Step = "DropHost"
	DropFinalizer     Step = "DropFinalizer"
	DropKept          Step = "DropKept"
	EndPromise        Step = "EndPromise"
	Unmark            Step = "Unmark"
	MarkUnused        Step = "MarkUnused"
	CountGrace        Step = "CountGrace"
	MarkReleasing     Step = "MarkReleasing"
	SetDeleteUnused   Step = "SetDeleteUnused"
	Unfulfil          Step = "Unfulfil"
	CreateClaim       Step = "CreateClaim"
	Withdraw          Step = "Withdraw"
	Stamp             Step = "Stamp"
	Secure            Step = "Secure"
	SetRetain         Step = "SetRetain"
	Repoint           Step = "Repoint"
	Touch             Step = "Touch"
	Grow              Step = "Grow"
	Modify            Step = "Modify"
	SetDelete         Step = "SetDelete"
	DeleteClaim       Step = "DeleteClaim"
	DeleteStale       Step = "DeleteStale"
	DeleteLeft        Step = "DeleteLeft"
	DestroyUnmirrored Step = "DestroyUnmirrored"
	DeleteRetained    Step = "DeleteRetained"
	DeleteLost        Step = "DeleteLost"
	DeleteUnused      Step = "DeleteUnused"
)

// stepActions describes each step, what must be proven before it, and which reasons the controller may
// report.
var stepActions = []states.Action{
	states.NewAction(CreatePromise, "create the promise for a claim", states.NoNeeds()),
	states.NewAction(Place, "record that the claim is placed in this member", states.ProofNeeds("FindCounterparts"), v1alpha1.ReasonHeldBack),
	states.NewAction(Unplace, "remove the record of the placement, because no objects of the claim are left in the member, or because an admin released the claim's promise from the member", states.ProofNeeds("LivePodsOfClaim", "ProveLeafClaimGone", "ProveHostUnchanged")),
	states.NewAction(Unselect, "remove the annotation with the selected node, so that the scheduler selects a node again", states.NoNeeds()),
	states.NewAction(SelectNode, "if an importer selected this member, and no Pod of the claim has been waiting for a node for ten seconds, set the annotation with the selected node on the leaf claim", states.ProofNeeds("LivePodsOfClaim", "ProveImportedHere"), v1alpha1.ReasonNotScheduled, v1alpha1.ReasonRefusedByMember),
	states.NewAction(Label, "label the promise for this member, and record which Pod needs the disk", states.NoNeeds()),
	states.NewAction(Unlabel, "remove this member's labels from the promise, because no objects of the claim are left in the member", states.ProofNeeds("LivePodsOfClaim", "ProveLeafClaimGone")),
	states.NewAction(CreateClaim, "create the leaf claim; if the volume exists, the leaf claim names it", states.ProofNeeds("FindCounterparts", "ProvePlacedHere", "ProvePromisedHere", "ProveSourceHere"), v1alpha1.ReasonAttributesClassMismatch, v1alpha1.ReasonAttributesClassNotFound, v1alpha1.ReasonDataSourceUnsupported, v1alpha1.ReasonNameTaken, v1alpha1.ReasonQuantityOutOfRange, v1alpha1.ReasonRefusedByMember),
	states.NewAction(Withdraw, "delete a leaf claim that is not bound to a volume", states.EvidenceNeeds("WithdrawingClaim", "LivePodsOfClaim", "ProveRootGone", "ProveRootUnchanged", "ProveNothingProvisioned", "ProveMemberCurrent"), v1alpha1.ReasonPlacementWithdrawn, v1alpha1.ReasonSuspended, v1alpha1.ReasonVolumeKept),
	states.NewAction(Touch, "make the member's PV controller reconcile the leaf claim again", states.NoNeeds()),
	states.NewAction(Grow, "set the leaf claim's storage request to that of the root claim; if the member rejects this, apply a changed VolumeAttributesClass", states.NoNeeds(), v1alpha1.ReasonAttributesClassMismatch, v1alpha1.ReasonAttributesClassNotFound, v1alpha1.ReasonExpansionPushed, v1alpha1.ReasonModificationPushed, v1alpha1.ReasonQuantityOutOfRange, v1alpha1.ReasonRefusedByMember),
	states.NewAction(Modify, "set the leaf claim's VolumeAttributesClass to the member's counterpart of the root claim's class", states.NoNeeds(), v1alpha1.ReasonAttributesClassMismatch, v1alpha1.ReasonAttributesClassNotFound, v1alpha1.ReasonModificationPushed, v1alpha1.ReasonRefusedByMember),
	states.NewAction(AdoptClaim, "assign the leaf claim to the root claim that requests its volume", states.ProofNeeds("ProveLeafClaimFor"), v1alpha1.ReasonVolumeAdopted),
	states.NewAction(Adopt, "create the host PV for the claim that requests the volume", states.ProofNeeds("ProveLeafReleasedFor"), v1alpha1.ReasonVolumeAdopted),
	states.NewAction(Import, "record on an admin's host PV that it represents the leaf PV", states.ProofNeeds("ProveHostUnchanged", "ProveLeafVolume", "ProveRootGone", "ProveMemberClaimGone", "ProveSoleImport", "ProveMemberCurrent")),
	states.NewAction(Take, "with the consent of the member's admin, stamp the leaf PV for the admin's host PV that represents it, and set the leaf PV's policy to Retain", states.NoNeeds(), v1alpha1.ReasonVolumeAdopted),
	states.NewAction(CreateHost, "create the host PV", states.NoNeeds(), v1alpha1.ReasonNotShared, v1alpha1.ReasonVolumeMirrored, v1alpha1.ReasonVolumeRecreated),
	states.NewAction(Fulfil, "record the leaf PV on its promise", states.ProofNeeds("ProveLeafVolume"), v1alpha1.ReasonPromiseFulfilled),
	states.NewAction(UpdateHost, "update the host PV to match the leaf PV", states.NoNeeds(), v1alpha1.ReasonLastClaimLost),
	states.NewAction(Stamp, "stamp the leaf PV, and set its policy to Retain", states.NoNeeds()),
	states.NewAction(Secure, "set the leaf PV's policy to Retain, and stamp the leaf PV if a leaf claim is bound to it", states.NoNeeds()),
	states.NewAction(SetRetain, "set the leaf PV's policy to Retain", states.NoNeeds()),
	states.NewAction(Repoint, "set the leaf PV's claimRef to its new leaf claim", states.NoNeeds()),
	states.NewAction(FreePromise, "remove the placement of an abandoned promise's claim, then release the promise from its member", states.EvidenceNeeds("DroppableVolume", "ProveHostUnchanged", "DroppableIfAbandoned"), v1alpha1.ReasonAbandoned),
	states.NewAction(DeleteHost, "delete the host PV of an abandoned volume", states.EvidenceNeeds("DroppableVolume", "DroppableIfAbandoned"), v1alpha1.ReasonAbandoned),
	states.NewAction(AbandonHost, "record that the volume is abandoned, and remove Xylem's finalizer", states.EvidenceNeeds("DroppableVolume", "DroppableIfAbandoned"), v1alpha1.ReasonAbandoned),
	states.NewAction(DropPromise, "delete a promise that is not assigned to a member, then remove Xylem's finalizer", states.EvidenceNeeds("DroppableVolume", "ProvePromiseUnneeded")),
	states.NewAction(DropHost, "delete the host PV, then remove Xylem's finalizer, because no objects are left in the member", states.EvidenceNeeds("DroppableVolume", "ProveLeafGone"), v1alpha1.ReasonVolumeLost),
	states.NewAction(DropFinalizer, "remove Xylem's finalizer from a promise that is being deleted, has no disk and is free", states.EvidenceNeeds("DroppableVolume", "DroppableIfNoDisk")),
	states.NewAction(DropKept, "remove Xylem's finalizer from a host PV that is being deleted, and whose disk is kept; first record the disk if the restored member has lost the volume", states.EvidenceNeeds("DroppableVolume", "ProveDiskKept"), v1alpha1.ReasonVolumeLost),
	states.NewAction(EndPromise, "delete a promise without a disk, then remove Xylem's finalizer", states.EvidenceNeeds("DroppableVolume", "ProvePromiseEnded")),
	states.NewAction(MarkUnused, "mark a promise as unused from now on", states.ProofNeeds("ProveHostUnchanged", "ProveClaimUnused", "ProveVolumeUnneeded", "ProveLeafVolume")),
	states.NewAction(CountGrace, "start the grace period for a mark that another process set", states.ProofNeeds("ProveHostUnchanged", "ProveClaimUnused", "ProveVolumeUnneeded", "ProveLeafVolume")),
	states.NewAction(MarkReleasing, "mark the promise as being released", states.ProofNeeds("ProveHostUnchanged", "ProveClaimUnused", "ProveVolumeUnneeded", "ProveLeafVolume")),
	states.NewAction(SetDeleteUnused, "set the leaf PV's policy to Delete, because its promise is being released", states.EvidenceNeeds("ReleasingPromise", "ProveHostUnchanged", "ProveClaimUnused", "ProveVolumeUnneeded", "ProveLeafVolume")),
	states.NewAction(DeleteUnused, "delete the leaf claim of a promise that is being released", states.EvidenceNeeds("ReleasingPromise", "ProveHostUnchanged", "ProveLeafVolume", "ProveVolumeUnneeded")),
	states.NewAction(Unfulfil, "turn a promise whose disk is gone back into a promise without a disk", states.EvidenceNeeds("DroppableVolume", "ProveLeafGone"), v1alpha1.ReasonVolumeLost, v1alpha1.ReasonVolumeReleased),
	states.NewAction(Unmark, "remove the marks as unused and as being released from the promise", states.ProofNeeds("ProveLeafVolume")),
	states.NewAction(SetDelete, "set the leaf PV's policy to Delete, then delete the leaf claim, as DeleteClaim does", states.EvidenceNeeds("DestroyingVolume", "ProveRootGone", "ProveHostReleased", "ProveVolumeUnneeded", "ProveLeafVolume")),
	states.NewAction(DeleteClaim, "delete the leaf claim", states.EvidenceNeeds("DestroyingVolume", "ProveRootGone", "ProveLeafVolume", "ProveHostReleased", "ProveVolumeUnneeded")),
	states.NewAction(DeleteStale, "delete the leaf claim that is bound to the volume but belongs to an earlier root", states.EvidenceNeeds("KeepingVolume", "ProveVolumeKept")),
	states.NewAction(DeleteLeft, "delete a leaf claim that names the volume, but is not bound to it and belongs to an earlier root", states.EvidenceNeeds("KeepingVolume", "ProveVolumeKept", "ProveRootGone", "ProveLeafVolume", "ProveNotMirrored", "ProveMemberCurrent"), v1alpha1.ReasonSuspended, v1alpha1.ReasonVolumeKept),
	states.NewAction(DestroyUnmirrored, "delete the leaf claim and its volume, which was never mirrored", states.EvidenceNeeds("UnmirroredVolume", "ProveRootGone", "ProveLeafVolume", "ProveNotMirrored", "ProveMemberCurrent", "ProveVolumeUnneeded"), v1alpha1.ReasonSuspended, v1alpha1.ReasonVolumeKept),
	states.NewAction(DeleteRetained, "delete the leaf claim, but keep its volume, which outlives it", states.EvidenceNeeds("KeepingVolume", "ProveRootGone", "ProveLeafVolume", "ProveNotMirrored", "ProveMemberCurrent"), v1alpha1.ReasonSuspended, v1alpha1.ReasonVolumeKept),
	states.NewAction(DeleteLost, "delete the leaf claim of a volume that is gone", states.EvidenceNeeds("UnmirroredVolume", "ProveRootGone", "ProveLeafVolume", "ProveNotMirrored", "ProveMemberCurrent", "ProveVolumeUnneeded"), v1alpha1.ReasonSuspended, v1alpha1.ReasonVolumeKept),
}
