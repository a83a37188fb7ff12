package states

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xylem-io/xylem/internal/mirror"
)

// lamp is the observation in the test's table.
type lamp struct{ plugged, on, broken bool }

var (
	plugged = NewFact("plugged in", "not plugged in", func(l *lamp) bool { return l.plugged })
	on      = NewFact("on", "off", func(l *lamp) bool { return l.on })
	broken  = NewFact("broken", "not broken", func(l *lamp) bool { return l.broken })
)

func lamps() Table[lamp] {
	return Table[lamp]{
		Otherwise: "Foreign",
		Parts: []Part[lamp]{
			{Title: "Plugged in", Implied: plugged.Description(), Sections: []Section[lamp]{
				{Title: "It works", When: []Fact[lamp]{plugged, AnyFact(NegateFact(broken), on)}, Rows: []Row[lamp]{
					{Phase: "Lit", When: []Fact[lamp]{AllFacts(plugged, on)}, Owner: "switch", Until: "it is switched off"},
					{Phase: "Dark", Step: "SwitchOn", Owner: "switch"},
				}},
				{Title: "It is broken", When: []Fact[lamp]{plugged}, Rows: []Row[lamp]{
					{Phase: "Dark", Step: "Replace", Owner: "janitor", Reasons: "Broken", Report: func(*lamp) *mirror.Refusal { return &mirror.Refusal{Reason: "Broken"} }},
				}},
			}},
		},
		Steps: []Action{NewAction("SwitchOn", "switches it on", NoNeeds()), NewAction("Replace", "throws it away", EvidenceNeeds("Broken", "LiveLook"), "Replaced", "NoSpare")},
	}
}

func TestNext(t *testing.T) {
	table := lamps()
	for name, test := range map[string]struct {
		lamp lamp
		want Plan
	}{
		"the first row that matches":                       {lamp{plugged: true, on: true}, Plan{Phase: "Lit", Owner: "switch"}},
		"the second row, because the first does not match": {lamp{plugged: true}, Plan{Phase: "Dark", Step: "SwitchOn", Owner: "switch"}},
		"a row of the next section, with a report and needs": {
			lamp{plugged: true, broken: true},
			Plan{Phase: "Dark", Step: "Replace", Owner: "janitor", Needs: Needs{[]string{"Broken"}, []string{"LiveLook"}}, Report: &mirror.Refusal{Reason: "Broken"}},
		},
		"no row matches": {lamp{on: true}, Plan{Phase: "Foreign"}},
	} {
		got := table.Next(&test.lamp)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.StepOwnedBy(got.Owner) != got.Step || got.StepOwnedBy("nobody") != None {
			t.Errorf("%s: By returns step %q for owner %q, and %q for another controller; want %q and none", name, got.StepOwnedBy(got.Owner), got.Owner, got.StepOwnedBy("nobody"), got.Step)
		}
	}
	if got := table.StepsOwnedBy("switch"); !slices.Equal(got, []Step{"SwitchOn"}) {
		t.Errorf("steps of the switch: %v, want [SwitchOn]", got)
	}
}

func TestPage(t *testing.T) {
	table := lamps()
	page := table.RenderMarkdown()
	for _, line := range []string{
		"## Plugged in", "### It works", "All rows: not broken, or on. Controller: switch.",
		"| Lit | plugged in and on | until it is switched off |  |", "| Dark | otherwise | **SwitchOn** |  |",
		"Controller: janitor.", "| Dark | otherwise | **Replace** | Broken |", "| Replace | throws it away | **Broken**: LiveLook | Replaced, NoSpare |",
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("the page lacks %q:\n%s", line, page)
		}
	}
}

// TestProblems checks that FindProblems finds each of these mistakes.
func TestProblems(t *testing.T) {
	whole := lamps()
	if problems := whole.FindProblems(); len(problems) > 0 {
		t.Errorf("a correct table has problems: %v", problems)
	}
	for want, spoil := range map[string]func(*Table[lamp]){
		`row 0 of "It works" has a condition without a text`: func(t *Table[lamp]) { t.Parts[0].Sections[0].Rows[0].When = []Fact[lamp]{NegateFact(AnyFact(broken))} },
		`row 1 of "It works" must have either a step or a wait, but has step "" and wait ""`: func(t *Table[lamp]) {
			t.Parts[0].Sections[0].Rows[1].Step, t.Steps = None, t.Steps[1:]
		},
		`row 0 of "It works" must have a phase and an owner, but has phase "Lit" and owner ""`: func(t *Table[lamp]) { t.Parts[0].Sections[0].Rows[0].Owner = "" },
		`row 0 of "It is broken" reports without a reason`:                                     func(t *Table[lamp]) { t.Parts[0].Sections[1].Rows[0].Reasons = "" },
		"no row has step Paint":          func(t *Table[lamp]) { t.Steps = append(t.Steps, NewAction("Paint", "paints it", NoNeeds())) },
		"step SwitchOn is not described": func(t *Table[lamp]) { t.Steps = t.Steps[1:] },
	} {
		table := lamps()
		spoil(&table)
		if problems := table.FindProblems(); !slices.Equal(problems, []string{want}) {
			t.Errorf("problems %q, want %q", problems, want)
		}
	}
}
