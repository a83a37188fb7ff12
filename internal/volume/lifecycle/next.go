package lifecycle

import (
	"slices"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/volume"
)

// Phase is the state of a volume.
type Phase string

// Phases.
const (
	Unplaced       Phase = "Unplaced"
	Placing        Phase = "Placing"
	Unplacing      Phase = "Unplacing"
	BoundElsewhere Phase = "BoundElsewhere"
	Unconfirmed    Phase = "Unconfirmed"
	Unpromised     Phase = "Unpromised"
	Terminating    Phase = "Terminating"
	Foreign        Phase = "Foreign" // not ours
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
	Importing      Phase = "Importing" // an existing volume of the member
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

// Owner is the controller that takes a step or reports to the user.
type Owner string

// The controllers.
const (
	RootPVC    Owner = "root_pvc"
	RootPV     Owner = "root_pv"
	LeafPV     Owner = "leaf_pv"
	HostVolume Owner = "host_volume"
	Promise    Owner = "promise"
)

// Plan is the phase of a volume and the next step.
type Plan struct {
	Phase Phase
	// Step is what Owner must do, or None.
	Step  Step
	Owner Owner
	// Needs is what must be proven first.
	Needs Needs
	// Report is what Owner reports to the user, or nil.
	Report *mirror.Refusal
}

// By returns the step if the given controller owns it.
func (p Plan) By(o Owner) Step {
	if p.Owner != o {
		return None
	}
	return p.Step
}

// section is a part of the table: rows with common conditions.
type section struct {
	title string
	when  []fact
	rows  []row
}

// row is one row of the table.
type row struct {
	phase Phase
	when  []fact
	step  Step
	owner Owner
	// until describes what ends a state that has no step.
	until string
	// reason is that of the message that report returns. If a controller adds more information,
	// report is nil.
	reason string
	report func(*volume.Observed) *mirror.Refusal
}

// part is one part of the table.
type part struct {
	title, intro string
	sections     []section
}

// table is the life of a claim and its volume. Next searches the parts and their sections in
// order. The first row whose conditions, and those of its section, are all met applies.
var table = []part{
	{"Mirror mode: a claim without a volume", "All rows: a claim that has no volume in this member, as root_pvc observes it.", claims},
	{"Promise mode, until there is a disk", "", promises},
	{"A volume, in both modes", "", volumes},
}

// Next returns the plan for a volume: the first row whose conditions are met. It is pure.
func Next(s *volume.Observed) Plan {
	for i := range table {
		if p, found := next(table[i].sections, s); found {
			return p
		}
	}
	return Plan{Phase: Foreign}
}

func next(sections []section, s *volume.Observed) (Plan, bool) {
	for i := range sections {
		if !met(sections[i].when, s) {
			continue
		}
		for j := range sections[i].rows {
			if r := &sections[i].rows[j]; met(r.when, s) {
				return r.plan(s), true
			}
		}
	}
	return Plan{}, false
}

func met(facts []fact, s *volume.Observed) bool {
	return !slices.ContainsFunc(facts, func(f fact) bool { return !f.is(s) })
}

func (r *row) plan(s *volume.Observed) Plan {
	p := Plan{Phase: r.phase, Step: r.step, Owner: r.owner, Needs: NeedsOf(r.step)}
	if r.report != nil {
		p.Report = r.report(s)
	}
	return p
}
