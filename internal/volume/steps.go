package volume

// Step is one write, or the few that belong to one, by which a volume gets on.
type Step string

// Steps.
const (
	None              Step = ""
	Place             Step = "Place"
	Adopt             Step = "Adopt"
	AdoptClaim        Step = "AdoptClaim"
	CreateHost        Step = "CreateHost"
	Fulfil            Step = "Fulfil"
	KeepHost          Step = "KeepHost"
	LetGo             Step = "LetGo"
	Unplace           Step = "Unplace"
	DeleteHost        Step = "DeleteHost"
	ReleaseHost       Step = "ReleaseHost"
	DropPromise       Step = "DropPromise"
	DropHost          Step = "DropHost"
	DropFinalizer     Step = "DropFinalizer"
	EndPromise        Step = "EndPromise"
	Unmark            Step = "Unmark"
	Release           Step = "Release"
	Unfulfil          Step = "Unfulfil"
	CreateClaim       Step = "CreateClaim"
	Withdraw          Step = "Withdraw"
	Stamp             Step = "Stamp"
	Keep              Step = "Keep"
	Hold              Step = "Hold"
	Repoint           Step = "Repoint"
	Nudge             Step = "Nudge"
	Grow              Step = "Grow"
	SetDelete         Step = "SetDelete"
	DeleteClaim       Step = "DeleteClaim"
	DeleteStale       Step = "DeleteStale"
	DeleteLeft        Step = "DeleteLeft"
	DestroyUnmirrored Step = "DestroyUnmirrored"
	DeleteRetained    Step = "DeleteRetained"
	DeleteLost        Step = "DeleteLost"
	DeleteUnused      Step = "DeleteUnused"
)

// steps says what a step is, and what proves, by live reads, that it may be taken: the evidence
// that guarded asks for before it destroys data, or proofs.
var steps = []struct {
	step                   Step
	does, evidence, proofs string
}{
	{Place, "record that the claim is placed in this member", "", ""},
	{Adopt, "create the host PV for the claim that asks for the volume", "", ""},
	{AdoptClaim, "give the leaf claim to the claim that asks for its volume", "", ""},
	{CreateHost, "create the host PV", "", ""},
	{Fulfil, "record the leaf PV on its promise", "", "LeafVolume"},
	{KeepHost, "bring the host PV up to date", "", ""},
	{LetGo, "take a promise from its member", "", ""},
	{Unplace, "take the member off the claim of such a promise", "", "HostUnchanged"},
	{DeleteHost, "delete the host PV", "", ""},
	{ReleaseHost, "record that the volume is given up, and take our finalizer off", "", ""},
	{DropPromise, "end a promise that no member has", "", "HostUnchanged"},
	{DropHost, "delete the host PV and take our finalizer off: nothing is left in the member", "", "LeafGone"},
	{DropFinalizer, "take our finalizer off a host PV that is being deleted", "", ""},
	{EndPromise, "delete a promise without a disk, and take our finalizer off", "", "HostReleased, RootGone, HostUnchanged, LeafGone"},
	{Unmark, "take the marks of an unused promise off", "", "LeafVolume"},
	{Release, "mark an unused promise, in the end as one whose disk is released", "Releasing", ""},
	{Unfulfil, "make it a promise without a disk again", "", "LeafGone"},
	{CreateClaim, "create the leaf claim, for the volume by its name", "", "PlacedHere, Promised"},
	{Withdraw, "delete a leaf claim that has no volume", "Withdrawing", ""},
	{Stamp, "stamp the leaf PV, and set it to Retain", "", ""},
	{Keep, "set the leaf PV to Retain, and stamp it where a leaf claim has it", "", ""},
	{Hold, "set the leaf PV to Retain", "", ""},
	{Repoint, "point the leaf PV at its new leaf claim", "", ""},
	{Nudge, "have the member's PV controller look at the leaf claim again", "", ""},
	{Grow, "raise the leaf claim's request", "", ""},
	{SetDelete, "set the leaf PV to Delete", "Destroying", ""},
	{DeleteClaim, "delete the leaf claim", "Destroying", ""},
	{DeleteStale, "delete the leaf claim of an earlier root, which has the volume", "Keeping", ""},
	{DeleteLeft, "delete the leaf claim of an earlier root, which names the volume", "Keeping", ""},
	{DestroyUnmirrored, "delete the leaf claim, and with it a volume that the host never knew", "Unmirrored", ""},
	{DeleteRetained, "delete the leaf claim, whose volume outlives it", "Keeping", ""},
	{DeleteLost, "delete the leaf claim of a volume that is gone", "Unmirrored", ""},
	{DeleteUnused, "delete the leaf claim of a promise that is released", "Releasing", ""},
}
