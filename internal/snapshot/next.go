package snapshot

import (
	"github.com/xylem-io/xylem/internal/states"
)

type (
	// Phase is the state of a snapshot.
	Phase = states.Phase
	// Step is an action of a controller on a snapshot.
	Step = states.Step
	// Owner is the controller that takes a step or reports to the user.
	Owner = states.Owner
	// Plan is the phase of a snapshot and the next step.
	Plan = states.Plan
	// Needs is what must be proven before a step.
	Needs = states.Needs
)

// None means that no step is needed.
const None = states.None

// Phases.
const (
	Foreign       Phase = "Foreign" // not a snapshot of this host with Xylem's driver
	Unrepresented Phase = "Unrepresented"
	Orphaned      Phase = "Orphaned"
	Refused       Phase = "Refused"
	Released      Phase = "Released"
	Away          Phase = "Away"
	Unavailable   Phase = "Unavailable"
	Placing       Phase = "Placing"
	Taking        Phase = "Taking"
	Holding       Phase = "Holding"
	Ready         Phase = "Ready"
	Lost          Phase = "Lost"
	Mismatched    Phase = "Mismatched"
	Terminating   Phase = "Terminating"
	Ending        Phase = "Ending"
	Destroying    Phase = "Destroying"
	Keeping       Phase = "Keeping"
	Retained      Phase = "Retained"
)

// The controllers.
const (
	RootSnapshot Owner = "root_snapshot"
	LeafSnapshot Owner = "leaf_snapshot"
	HostSnapshot Owner = "host_snapshot"
)

// section is a part of the table, and row is one of its rows.
type (
	section = states.Section[Observed]
	row     = states.Row[Observed]
)

// table describes the lifecycle of a snapshot.
var table = states.Table[Observed]{
	Parts: []states.Part[Observed]{{Sections: sections}},
	Steps: stepDescriptions, Otherwise: Foreign,
}

// NextPlan returns the plan for a snapshot. It is pure.
func NextPlan(s *Observed) Plan { return table.Next(s) }

// StepsOwnedBy returns the steps that a controller owns.
func StepsOwnedBy(owner Owner) []Step { return table.StepsOwnedBy(owner) }

// NeedsOfStep returns the needs of a step.
func NeedsOfStep(step Step) Needs { return table.NeedsOfStep(step) }

// ReasonsOfStep returns the reasons that a controller may report with a step.
func ReasonsOfStep(step Step) []string { return table.ReasonsOfStep(step) }

// RenderMarkdown returns the table in Markdown.
func RenderMarkdown() string { return table.RenderMarkdown() }
