package lifecycle

import (
	"github.com/xylem-io/xylem/internal/states"
	"github.com/xylem-io/xylem/internal/volume"
)

type (
	// Phase is the state of a volume.
	Phase = states.Phase
	// Step is an action of a controller on a volume.
	Step = states.Step
	// Owner is the controller that takes a step or reports to the user.
	Owner = states.Owner
	// Plan is the phase of a volume and the next step.
	Plan = states.Plan
	// Needs lists what must be proven before a step.
	Needs = states.Needs
)

// None means that no step is needed.
const None = states.None

// Phases.
const (
	Unplaced       Phase = "Unplaced"
	Placing        Phase = "Placing"
	Unplacing      Phase = "Unplacing"
	BoundElsewhere Phase = "BoundElsewhere"
	Unconfirmed    Phase = "Unconfirmed"
	Unpromised     Phase = "Unpromised"
	Terminating    Phase = "Terminating"
	Foreign        Phase = "Foreign" // not related to this host
	Abandoned      Phase = "Abandoned"
	Promised       Phase = "Promised"
	Idle           Phase = "Idle"
	Releasing      Phase = "Releasing"
	Holding        Phase = "Holding"
	Mirrored       Phase = "Mirrored"
	Ending         Phase = "Ending"
	Destroying     Phase = "Destroying"
	Retained       Phase = "Retained"
	Free           Phase = "Free"
	Orphaned       Phase = "Orphaned"
	Adopting       Phase = "Adopting"
	Importing      Phase = "Importing" // adopts an existing volume of the member
	Withdrawing    Phase = "Withdrawing"
	Mismatched     Phase = "Mismatched"
	InUse          Phase = "InUse" // used by another claim in the member
	Surplus        Phase = "Surplus"
	Provisioned    Phase = "Provisioned"
	Provisioning   Phase = "Provisioning"
	Reusing        Phase = "Reusing"
	Bound          Phase = "Bound"
	Lost           Phase = "Lost"
)

// The controllers that take steps.
const (
	RootPVC    Owner = "root_pvc"
	RootPV     Owner = "root_pv"
	LeafPV     Owner = "leaf_pv"
	HostVolume Owner = "host_volume"
	Promise    Owner = "promise"
)

// section is a section of the table, and row is one of its rows.
type (
	section = states.Section[volume.Observed]
	row     = states.Row[volume.Observed]
)

// lifecycleTable is the lifecycle of a claim and its volume. Next searches the parts and their sections in
// order.
var lifecycleTable = states.Table[volume.Observed]{
	Parts: []states.Part[volume.Observed]{
		{Title: "Mirror mode: a claim without a volume", Intro: "All rows: root_pvc observes the claim, which has no volume in this member.", Sections: claimSections, Implied: hasNoVolumeHere.Description()},
		{Title: "Promise mode, until a disk exists", Sections: promiseSections, Implied: hasNoVolumeHere.Description()},
		{Title: "A volume, in both modes", Sections: volumeSections, Implied: hasNoVolumeHere.Description()},
	},
	Steps: stepActions, Otherwise: Foreign,
}

// NextPlan returns the plan for a volume. It is pure.
func NextPlan(s *volume.Observed) Plan { return lifecycleTable.Next(s) }

// NeedsOfStep returns what must be proven before a step.
func NeedsOfStep(step Step) Needs { return lifecycleTable.NeedsOfStep(step) }

// ReasonsOfStep returns the reasons that a controller may report with a step.
func ReasonsOfStep(step Step) []string { return lifecycleTable.ReasonsOfStep(step) }

// StepsOfOwner returns the steps of a controller.
func StepsOfOwner(owner Owner) []Step { return lifecycleTable.StepsOwnedBy(owner) }

// MarkdownPage returns the table in Markdown.
func MarkdownPage() string { return lifecycleTable.RenderMarkdown() }
