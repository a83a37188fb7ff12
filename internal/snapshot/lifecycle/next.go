package lifecycle

import (
	"slices"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/snapshot"
)

// Phase of a snapshot's life.
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

// Owner is the controller that takes a step, or that reports to the user.
type Owner string

// Controllers by their names.
const (
	RootSnapshot Owner = "root_snapshot"
	LeafSnapshot Owner = "leaf_snapshot"
	HostSnapshot Owner = "host_snapshot"
)

// Plan says where a snapshot is in its life, and what comes next.
type Plan struct {
	Phase Phase
	// Step that Owner takes, unless None.
	Step  Step
	Owner Owner
	// Needs is what has to be proven first.
	Needs Needs
	// Report is what the status of the host content has as its error; nil for what the
	// member says.
	Report *mirror.Refusal
}

// By is the step that a controller has to take.
func (p Plan) By(o Owner) Step {
	if p.Owner != o {
		return None
	}
	return p.Step
}

// section of the table: rows with conditions in common.
type section struct {
	title string
	when  []fact
	rows  []row
}

// row of the table.
type row struct {
	phase Phase
	when  []fact
	step  Step
	owner Owner
	// until says what ends a state without a step.
	until string
	// reason of the message that report returns.
	reason string
	report func(*snapshot.Observed) *mirror.Refusal
}

// Next is the plan for a snapshot: the first row whose conditions are met. It is pure.
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
