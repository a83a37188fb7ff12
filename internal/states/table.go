package states

import (
	"fmt"
	"slices"

	"github.com/xylem-io/xylem/internal/mirror"
)

// Phase is the state of an object.
type Phase string

// Owner is the controller that takes a step or reports to the user.
type Owner string

// Step is an action of a controller: one write, or a few that belong together.
type Step string

// None means that no step is needed.
const None Step = ""

// Plan is the phase of an object and the next step.
type Plan struct {
	Phase Phase
	// Step is what Owner must do, or None.
	Step  Step
	Owner Owner
	// Needs is what must be proven before Step.
	Needs Needs
	// Report is what Owner reports to the user, or nil.
	Report *mirror.Refusal
}

// StepOwnedBy returns the step if the given controller owns it.
func (p Plan) StepOwnedBy(o Owner) Step {
	if p.Owner != o {
		return None
	}
	return p.Step
}

// Needs is what live reads must prove before a step.
type Needs struct {
	// Evidence lists the types of package proof that guarded requires before it destroys data.
	Evidence []string
	// Proofs lists the functions of package proof, including those for the evidence.
	Proofs []string
}

// NoNeeds returns the needs of a step that does not destroy data and is safe even with a stale
// cache.
func NoNeeds() Needs { return Needs{} }

// EvidenceNeeds returns the needs of a step that destroys data: a type of package proof, and its proofs.
func EvidenceNeeds(kind string, proofs ...string) Needs {
	return Needs{Evidence: []string{kind}, Proofs: proofs}
}

// ProofNeeds returns the needs of a step that does not destroy data.
func ProofNeeds(names ...string) Needs { return Needs{Proofs: names} }

// Action describes a step.
type Action struct {
	Step  Step
	Does  string
	Needs Needs
	// Reasons are the reasons that the controller may report when it takes the step, or if it cannot.
	Reasons []string
}

// NewAction returns the description of a step.
func NewAction(step Step, does string, needs Needs, reasons ...string) Action {
	return Action{step, does, needs, reasons}
}

// Table maps observations of type S to plans. Its rows are in the parts' sections.
type Table[S any] struct {
	Parts []Part[S]
	// Steps describes all steps in the rows.
	Steps []Action
	// Otherwise is the phase of an observation that matches no row. It has no owner.
	Otherwise Phase
}

// Part is a part of a table.
type Part[S any] struct {
	// Title and Intro are for the page. They may be empty if the table has only one part.
	Title, Intro string
	Sections     []Section[S]
	// Implied is the text of a condition that the title or the intro already states for all rows.
	Implied string
}

// Section is a part of a table whose rows share conditions.
type Section[S any] struct {
	Title string
	When  []Fact[S]
	Rows  []Row[S]
}

// Row is one row of a table. It has either a step or a description of what ends the wait.
type Row[S any] struct {
	Phase Phase
	When  []Fact[S]
	Step  Step
	Owner Owner
	// Until describes what ends a phase that has no step.
	Until string
	// Reasons are the reasons of the messages that Report returns. If a controller adds more
	// information, Report is nil.
	Reasons string
	Report  func(*S) *mirror.Refusal
}

// Next returns the plan for an observation: the first row whose conditions are met. It is pure.
func (t *Table[S]) Next(s *S) Plan {
	for i := range t.Parts {
		for j := range t.Parts[i].Sections {
			section := &t.Parts[i].Sections[j]
			if !allFactsHold(section.When, s) {
				continue
			}
			for k := range section.Rows {
				if r := &section.Rows[k]; allFactsHold(r.When, s) {
					return t.planOfRow(r, s)
				}
			}
		}
	}
	return Plan{Phase: t.Otherwise}
}

func (t *Table[S]) planOfRow(r *Row[S], s *S) Plan {
	p := Plan{Phase: r.Phase, Step: r.Step, Owner: r.Owner, Needs: t.NeedsOfStep(r.Step)}
	if r.Report != nil {
		p.Report = r.Report(s)
	}
	return p
}

// NeedsOfStep returns the needs of a step.
func (t *Table[S]) NeedsOfStep(step Step) Needs {
	for i := range t.Steps {
		if t.Steps[i].Step == step {
			return t.Steps[i].Needs
		}
	}
	return Needs{}
}

// ReasonsOfStep returns the reasons that a controller may report with a step.
func (t *Table[S]) ReasonsOfStep(step Step) []string {
	for i := range t.Steps {
		if t.Steps[i].Step == step {
			return t.Steps[i].Reasons
		}
	}
	return nil
}

// StepsOwnedBy returns the steps of a controller.
func (t *Table[S]) StepsOwnedBy(owner Owner) []Step {
	var all []Step
	t.visitRows(func(_ *Section[S], _ int, r *Row[S]) {
		if r.Owner == owner && r.Step != None && !slices.Contains(all, r.Step) {
			all = append(all, r.Step)
		}
	})
	return all
}

// FindProblems returns the table's mistakes: rows without an owner or a text, rows with both a step and
// a wait or neither, and steps that no row has or that are not described.
func (t *Table[S]) FindProblems() []string {
	var wrong []string
	used := map[Step]bool{None: true}
	untold := func(f Fact[S]) bool { return f.text == "" }
	t.visitRows(func(s *Section[S], i int, r *Row[S]) {
		addProblem := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf("row %d of %q ", i, s.Title)+fmt.Sprintf(format, args...))
		}
		if slices.ContainsFunc(s.When, untold) || slices.ContainsFunc(r.When, untold) {
			addProblem("has a condition without a text")
		}
		if (r.Step == None) == (r.Until == "") {
			addProblem("must have either a step or a wait, but has step %q and wait %q", r.Step, r.Until)
		}
		if r.Phase == "" || r.Owner == "" && r.Phase != t.Otherwise {
			addProblem("must have a phase and an owner, but has phase %q and owner %q", r.Phase, r.Owner)
		}
		if r.Report != nil && r.Reasons == "" {
			addProblem("reports without a reason")
		}
		used[r.Step] = true
	})
	described := map[Step]bool{None: true}
	for _, a := range t.Steps {
		if described[a.Step] = true; !used[a.Step] {
			wrong = append(wrong, fmt.Sprintf("no row has step %s", a.Step))
		}
	}
	for step := range used {
		if !described[step] {
			wrong = append(wrong, fmt.Sprintf("step %s is not described", step))
		}
	}
	return wrong
}

func (t *Table[S]) visitRows(visit func(s *Section[S], i int, r *Row[S])) {
	for p := range t.Parts {
		for j := range t.Parts[p].Sections {
			s := &t.Parts[p].Sections[j]
			for i := range s.Rows {
				visit(s, i, &s.Rows[i])
			}
		}
	}
}
