package lifecycle

import "slices"

// Step is an action of a controller on a volume: one write, or a few that belong together.
type Step string

// Steps.
const (
	None              Step = ""
	CreatePromise     Step = "CreatePromise"
	Place             Step = "Place"
	Unplace           Step = "Unplace"
	Unselect          Step = "Unselect"
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

// Needs is what live reads must prove before a step.
type Needs struct {
	// Evidence lists the types of package proof that guarded requires before it destroys data.
	Evidence []string
	// Proofs lists the functions of package proof, including those of the evidence.
	Proofs []string
}

// NeedsOf returns the needs of a step.
func NeedsOf(step Step) Needs {
	for _, s := range steps {
		if s.step == step {
			return s.needs
		}
	}
	return Needs{}
}

// StepsOf returns the steps of a controller.
func StepsOf(owner Owner) []Step {
	var all []Step
	for _, part := range table {
		for _, section := range part.sections {
			for _, r := range section.rows {
				if r.owner == owner && r.step != None && !slices.Contains(all, r.step) {
					all = append(all, r.step)
				}
			}
		}
	}
	return all
}

func evidence(kind string, proofs ...string) Needs { return Needs{[]string{kind}, proofs} }

func proofs(names ...string) Needs { return Needs{nil, names} }

// steps describes each step, and its needs.
var steps = []struct {
	step  Step
	does  string
	needs Needs
}{
	{CreatePromise, "create the promise of a claim", Needs{}},
	{Place, "record that the claim is placed in this member", proofs("Counterparts")},
	{Unplace, "remove the record: nothing of the claim is left in the member, or an admin took its promise from it", proofs("LivePodsOfClaim", "LeafClaimGone", "HostUnchanged")},
	{Unselect, "remove the selected node, so that the scheduler selects again", Needs{}},
	{Label, "label the promise for this member, with the Pod that its disk is for", Needs{}},
	{Unlabel, "remove the labels: nothing of the claim is left in the member", proofs("LivePodsOfClaim", "LeafClaimGone")},
	{CreateClaim, "create the leaf claim; for a volume that exists, with its name", proofs("PlacedHere", "Promised", "SourceHere")},
	{Withdraw, "delete a leaf claim that has no volume", evidence("Withdrawing", "LivePodsOfClaim", "RootGone", "RootUnchanged", "NothingMade", "MemberCurrent")},
	{Touch, "have the member's PV controller look at the leaf claim again", Needs{}},
	{Grow, "raise the leaf claim's request", Needs{}},
	{Modify, "name the root claim's VolumeAttributesClass, by the member's name of it", Needs{}},
	{AdoptClaim, "give the leaf claim to the claim that requests its volume", Needs{}},
	{Adopt, "create the host PV for the claim that requests the volume", Needs{}},
	{Import, "record on an admin's host PV that it represents the leaf PV", proofs("HostUnchanged", "LeafVolume", "RootGone", "ClaimGone", "SoleImport", "MemberCurrent")},
	{Take, "stamp the leaf PV for that host PV, and set it to Retain: the member's admin consents", Needs{}},
	{CreateHost, "create the host PV", Needs{}},
	{Fulfil, "record the leaf PV on its promise", proofs("LeafVolume")},
	{UpdateHost, "bring the host PV up to date", Needs{}},
	{Stamp, "stamp the leaf PV, and set it to Retain", Needs{}},
	{Secure, "set the leaf PV to Retain, and stamp it if a leaf claim has it", Needs{}},
	{SetRetain, "set the leaf PV to Retain", Needs{}},
	{Repoint, "point the leaf PV at its new leaf claim", Needs{}},
	{FreePromise, "remove the placement of the claim of an abandoned promise, then take the promise from its member", proofs("HostUnchanged")},
	{DeleteHost, "delete the host PV of an abandoned volume", Needs{}},
	{AbandonHost, "record that the volume is abandoned, and remove our finalizer", Needs{}},
	{DropPromise, "delete a promise that no member has, then remove our finalizer", proofs("HostUnchanged")},
	{DropHost, "delete the host PV, then remove our finalizer: nothing is left in the member", proofs("LeafGone")},
	{DropFinalizer, "remove our finalizer from a host PV that is being deleted", Needs{}},
	{EndPromise, "delete a promise without a disk, then remove our finalizer", proofs("HostReleased", "RootGone", "HostUnchanged", "LeafGone")},
	{MarkUnused, "mark a promise as unused since now", proofs("HostUnchanged", "Unused", "LeafVolume")},
	{CountGrace, "begin to count the grace period of a mark that another process made", proofs("HostUnchanged", "Unused", "LeafVolume")},
	{MarkReleasing, "mark the promise as being released", proofs("HostUnchanged", "Unused", "LeafVolume")},
	{SetDeleteUnused, "set the leaf PV of such a promise to Delete", evidence("Releasing", "HostUnchanged", "Unused", "LeafVolume")},
	{DeleteUnused, "delete the leaf claim of such a promise", evidence("Releasing", "HostUnchanged", "LeafVolume")},
	{Unfulfil, "make it a promise without a disk again", proofs("LeafGone")},
	{Unmark, "remove both marks", proofs("LeafVolume")},
	{SetDelete, "set the leaf PV to Delete", evidence("Destroying", "HostReleased", "RootGone")},
	{DeleteClaim, "delete the leaf claim", evidence("Destroying", "HostReleased", "RootGone", "LeafVolume")},
	{DeleteStale, "delete the leaf claim of an earlier root, which has the volume", evidence("Keeping", "Kept")},
	{DeleteLeft, "delete the leaf claim of an earlier root, which names the volume", evidence("Keeping", "Kept", "RootGone", "LeafVolume", "NotMirrored", "MemberCurrent")},
	{DestroyUnmirrored, "delete the leaf claim, and with it a volume that was never mirrored", evidence("Unmirrored", "RootGone", "LeafVolume", "NotMirrored", "MemberCurrent")},
	{DeleteRetained, "delete the leaf claim, whose volume outlives it", evidence("Keeping", "RootGone", "LeafVolume", "NotMirrored", "MemberCurrent")},
	{DeleteLost, "delete the leaf claim of a volume that is gone", evidence("Unmirrored", "RootGone", "LeafVolume", "NotMirrored", "MemberCurrent")},
}
