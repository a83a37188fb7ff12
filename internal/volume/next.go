package volume

import (
	"slices"

	"github.com/xylem-io/xylem/internal/mirror"
)

// Phase of a volume's life.
type Phase string

// Owner is the controller that takes a step, or that speaks to the user.
type Owner string

// Controllers by their names.
const (
	RootPVC    Owner = "root_pvc"
	RootPV     Owner = "root_pv"
	LeafPV     Owner = "leaf_pv"
	HostVolume Owner = "host_volume"
)

// Plan says where a volume is in its life, and what comes next.
type Plan struct {
	Phase Phase
	// Step that Owner takes, unless None.
	Step  Step
	Owner Owner
	// Tell is what Owner tells the user; nil for nothing.
	Tell *mirror.Refusal
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
	// told is the reason of the message, which tell returns. A controller may add what else it
	// knows, and then tell is nil.
	told string
	tell func(*Snapshot) *mirror.Refusal
}

// Next is the plan for a volume: the first row whose conditions are met. It is pure.
func Next(s *Snapshot) Plan {
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

func met(facts []fact, s *Snapshot) bool {
	return !slices.ContainsFunc(facts, func(f fact) bool { return !f.is(s) })
}

func (r *row) plan(s *Snapshot) Plan {
	p := Plan{Phase: r.phase, Step: r.step, Owner: r.owner}
	if r.tell != nil {
		p.Tell = r.tell(s)
	}
	return p
}
