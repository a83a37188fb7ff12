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

// steps describes each step, what must be proven before it, and which reasons the controller may
// report.
var steps = []states.Action{
	states.Act(CreatePromise, "create the promise for a claim", states.Nothing()),
	states.Act(Place, "record that the claim is placed in this member", states.Proofs("CounterpartsOf"), v1alpha1.ReasonHeldBack),
	states.Act(Unplace, "remove the record of the placement, because no objects of the claim are left in the member, or because an admin released the claim's promise from the member", states.Proofs("LivePodsOfClaim", "LeafClaimGone", "HostUnchanged")),
	states.Act(Unselect, "remove the annotation with the selected node, so that the scheduler selects a node again", states.Nothing()),
	states.Act(SelectNode, "if an importer selected this member, and no Pod of the claim has been waiting for a node for ten seconds, set the annotation with the selected node on the leaf claim", states.Proofs("LivePodsOfClaim", "Imported"), v1alpha1.ReasonNotScheduled, v1alpha1.ReasonRefusedByMember),
	states.Act(Label, "label the promise for this member, and record which Pod needs the disk", states.Nothing()),
	states.Act(Unlabel, "remove this member's labels from the promise, because no objects of the claim are left in the member", states.Proofs("LivePodsOfClaim", "LeafClaimGone")),
	states.Act(CreateClaim, "create the leaf claim; if the volume exists, the leaf claim names it", states.Proofs("CounterpartsOf", "PlacedHere", "Promised", "SourceHere"), v1alpha1.ReasonAttributesClassMismatch, v1alpha1.ReasonAttributesClassNotFound, v1alpha1.ReasonDataSourceUnsupported, v1alpha1.ReasonNameTaken, v1alpha1.ReasonQuantityOutOfRange, v1alpha1.ReasonRefusedByMember),
	states.Act(Withdraw, "delete a leaf claim that is not bound to a volume", states.Evidence("Withdrawing", "LivePodsOfClaim", "RootGone", "RootUnchanged", "NothingMade", "MemberCurrent"), v1alpha1.ReasonPlacementWithdrawn, v1alpha1.ReasonSuspended, v1alpha1.ReasonVolumeKept),
	states.Act(Touch, "make the member's PV controller reconcile the leaf claim again", states.Nothing()),
	states.Act(Grow, "set the leaf claim's storage request to that of the root claim; if the member rejects this, apply a changed VolumeAttributesClass", states.Nothing(), v1alpha1.ReasonAttributesClassMismatch, v1alpha1.ReasonAttributesClassNotFound, v1alpha1.ReasonExpansionPushed, v1alpha1.ReasonModificationPushed, v1alpha1.ReasonQuantityOutOfRange, v1alpha1.ReasonRefusedByMember),
	states.Act(Modify, "set the leaf claim's VolumeAttributesClass to the member's counterpart of the root claim's class", states.Nothing(), v1alpha1.ReasonAttributesClassMismatch, v1alpha1.ReasonAttributesClassNotFound, v1alpha1.ReasonModificationPushed, v1alpha1.ReasonRefusedByMember),
	states.Act(AdoptClaim, "assign the leaf claim to the root claim that requests its volume", states.Proofs("LeafClaimFor"), v1alpha1.ReasonVolumeAdopted),
	states.Act(Adopt, "create the host PV for the claim that requests the volume", states.Proofs("ReleasedFor"), v1alpha1.ReasonVolumeAdopted),
	states.Act(Import, "record on an admin's host PV that it represents the leaf PV", states.Proofs("HostUnchanged", "LeafVolume", "RootGone", "ClaimGone", "SoleImport", "MemberCurrent")),
	states.Act(Take, "with the consent of the member's admin, stamp the leaf PV for the admin's host PV that represents it, and set the leaf PV's policy to Retain", states.Nothing(), v1alpha1.ReasonVolumeAdopted),
	states.Act(CreateHost, "create the host PV", states.Nothing(), v1alpha1.ReasonNotShared, v1alpha1.ReasonVolumeMirrored, v1alpha1.ReasonVolumeRecreated),
	states.Act(Fulfil, "record the leaf PV on its promise", states.Proofs("LeafVolume"), v1alpha1.ReasonPromiseFulfilled),
	states.Act(UpdateHost, "update the host PV to match the leaf PV", states.Nothing(), v1alpha1.ReasonLastClaimLost),
	states.Act(Stamp, "stamp the leaf PV, and set its policy to Retain", states.Nothing()),
	states.Act(Secure, "set the leaf PV's policy to Retain, and stamp the leaf PV if a leaf claim is bound to it", states.Nothing()),
	states.Act(SetRetain, "set the leaf PV's policy to Retain", states.Nothing()),
	states.Act(Repoint, "set the leaf PV's claimRef to its new leaf claim", states.Nothing()),
	states.Act(FreePromise, "remove the placement of an abandoned promise's claim, then release the promise from its member", states.Evidence("Droppable", "HostUnchanged", "AbandonedByAdmin"), v1alpha1.ReasonAbandoned),
	states.Act(DeleteHost, "delete the host PV of an abandoned volume", states.Evidence("Droppable", "AbandonedByAdmin"), v1alpha1.ReasonAbandoned),
	states.Act(AbandonHost, "record that the volume is abandoned, and remove Xylem's finalizer", states.Evidence("Droppable", "AbandonedByAdmin"), v1alpha1.ReasonAbandoned),
	states.Act(DropPromise, "delete a promise that is not assigned to a member, then remove Xylem's finalizer", states.Evidence("Droppable", "Unneeded")),
	states.Act(DropHost, "delete the host PV, then remove Xylem's finalizer, because no objects are left in the member", states.Evidence("Droppable", "LeafGone"), v1alpha1.ReasonVolumeLost),
	states.Act(DropFinalizer, "remove Xylem's finalizer from a promise that is being deleted, has no disk and is free", states.Evidence("Droppable", "NoDisk")),
	states.Act(DropKept, "remove Xylem's finalizer from a host PV that is being deleted, and whose disk is kept; first record the disk if the restored member has lost the volume", states.Evidence("Droppable", "DiskKept"), v1alpha1.ReasonVolumeLost),
	states.Act(EndPromise, "delete a promise without a disk, then remove Xylem's finalizer", states.Evidence("Droppable", "PromiseEnded")),
	states.Act(MarkUnused, "mark a promise as unused from now on", states.Proofs("HostUnchanged", "Unused", "VolumeUnneeded", "LeafVolume")),
	states.Act(CountGrace, "start the grace period for a mark that another process set", states.Proofs("HostUnchanged", "Unused", "VolumeUnneeded", "LeafVolume")),
	states.Act(MarkReleasing, "mark the promise as being released", states.Proofs("HostUnchanged", "Unused", "VolumeUnneeded", "LeafVolume")),
	states.Act(SetDeleteUnused, "set the leaf PV's policy to Delete, because its promise is being released", states.Evidence("Releasing", "HostUnchanged", "Unused", "VolumeUnneeded", "LeafVolume")),
	states.Act(DeleteUnused, "delete the leaf claim of a promise that is being released", states.Evidence("Releasing", "HostUnchanged", "LeafVolume", "VolumeUnneeded")),
	states.Act(Unfulfil, "turn a promise whose disk is gone back into a promise without a disk", states.Evidence("Droppable", "LeafGone"), v1alpha1.ReasonVolumeLost, v1alpha1.ReasonVolumeReleased),
	states.Act(Unmark, "remove the marks as unused and as being released from the promise", states.Proofs("LeafVolume")),
	states.Act(SetDelete, "set the leaf PV's policy to Delete, then delete the leaf claim, as DeleteClaim does", states.Evidence("Destroying", "RootGone", "HostReleased", "VolumeUnneeded", "LeafVolume")),
	states.Act(DeleteClaim, "delete the leaf claim", states.Evidence("Destroying", "RootGone", "LeafVolume", "HostReleased", "VolumeUnneeded")),
	states.Act(DeleteStale, "delete the leaf claim that is bound to the volume but belongs to an earlier root", states.Evidence("Keeping", "Kept")),
	states.Act(DeleteLeft, "delete a leaf claim that names the volume, but is not bound to it and belongs to an earlier root", states.Evidence("Keeping", "Kept", "RootGone", "LeafVolume", "NotMirrored", "MemberCurrent"), v1alpha1.ReasonSuspended, v1alpha1.ReasonVolumeKept),
	states.Act(DestroyUnmirrored, "delete the leaf claim and its volume, which was never mirrored", states.Evidence("Unmirrored", "RootGone", "LeafVolume", "NotMirrored", "MemberCurrent", "VolumeUnneeded"), v1alpha1.ReasonSuspended, v1alpha1.ReasonVolumeKept),
	states.Act(DeleteRetained, "delete the leaf claim, but keep its volume, which outlives it", states.Evidence("Keeping", "RootGone", "LeafVolume", "NotMirrored", "MemberCurrent"), v1alpha1.ReasonSuspended, v1alpha1.ReasonVolumeKept),
	states.Act(DeleteLost, "delete the leaf claim of a volume that is gone", states.Evidence("Unmirrored", "RootGone", "LeafVolume", "NotMirrored", "MemberCurrent", "VolumeUnneeded"), v1alpha1.ReasonSuspended, v1alpha1.ReasonVolumeKept),
}
