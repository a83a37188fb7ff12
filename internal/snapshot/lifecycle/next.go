package lifecycle

import (
	"slices"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/snapshot"
)

// Phase is the state of a snapshot.
type Phase string

// Phases.
const (
	Foreign       Phase = "Foreign" // not Xylem's
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

// Owner is the controller that takes a step or reports to the user.
type Owner string

// The controllers.
const (
	RootSnapshot Owner = "root_snapshot"
	LeafSnapshot Owner = "leaf_snapshot"
	HostSnapshot Owner = "host_snapshot"
)

// Plan is the state of a snapshot and the next step.
type Plan struct {
	Phase Phase
	// Step is what Owner must do, or None.
	Step  Step
	Owner Owner
	// Needs lists the proofs that Step requires.
	Needs Needs
	// Report is the error to show in the host content's status. If it is nil, the status mirrors
	// the member's.
	Report *mirror.Refusal
}

// By returns the step that a controller must take.
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
	// reason is the reason of the message that report returns.
	reason string
	report func(*snapshot.Observed) *mirror.Refusal
}

// Next returns the plan for a snapshot: the plan of the first row that matches. It is pure.
func Next(s *snapshot.Observed) Plan {
	for i := range table {
		if !met(table[i].when, s) {
			continue
		}
		for j := range table[i].rows {
			if r := &table[i].rows[j]; met(r.when, s) {
				return r.plan(s)
			}
		}
	}
	return Plan{Phase: Foreign}
}

func met(facts []fact, s *snapshot.Observed) bool {
	return !slices.ContainsFunc(facts, func(f fact) bool { return !f.is(s) })
}

func (r *row) plan(s *snapshot.Observed) Plan {
	p := Plan{Phase: r.phase, Step: r.step, Owner: r.owner, Needs: NeedsOf(r.step)}
	if r.report != nil {
		p.Report = r.report(s)
	}
	return p
}
