package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xylem-io/xylem/internal/snapshot"
)

func TestWithReasons(t *testing.T) {
	groups := []group{{entries: []entry{{"ReasonNameTaken", "NameTaken", "the name is taken.", " use another."}}}, {entries: []entry{{"ReasonMemberAway", "Away", "it is away.", " wait."}}}}
	const table = "<!-- reasons: Away NameTaken -->\n\n| reason | what it means | what to do |\n|---|---|---|\n" +
		"| `Away` | It is away. | Wait. |\n| `NameTaken` | The name is taken. | Use another. |\n\n<!-- end of reasons -->\n"
	tests := map[string]struct {
		page, want string
		fails      bool
	}{
		"no table":            {page: "text\n", want: "text\n"},
		"an empty table":      {page: "a\n<!-- reasons: Away NameTaken -->\n<!-- end of reasons -->\nb\n", want: "a\n" + table + "b\n"},
		"an old table":        {page: "<!-- reasons: Away NameTaken -->\n| old |\n<!-- end of reasons -->\n", want: table},
		"a current table":     {page: table, want: table},
		"two tables":          {page: table + "x\n" + table, want: table + "x\n" + table},
		"an unknown reason":   {page: "<!-- reasons: Nothing -->\n<!-- end of reasons -->\n", fails: true},
		"without an end mark": {page: "<!-- reasons: Away -->\n", want: "<!-- reasons: Away -->\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := withReasons(test.page, groups)
			if test.fails != (err != nil) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// reported matches the last cell in a table row, which lists the reasons that the user reads.
var reported = regexp.MustCompile(`(?m)\| ([A-Z][\w, ]*) \|$`)

// TestHowTosHaveEveryReason checks that the how-tos for snapshots, restores and clones list every
// reason that Xylem reports for problems with them.
func TestHowTosHaveEveryReason(t *testing.T) {
	t.Chdir("../../..")
	page, err := os.ReadFile(howTos)
	if err != nil {
		t.Fatal(err)
	}
	_, groups, err := reasons()
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, g := range groups {
		for _, e := range g.entries {
			if strings.HasPrefix(e.value, "Source") || strings.HasPrefix(e.value, "DataSource") || strings.HasPrefix(g.text, "Reasons of events on VolumeSnapshots") {
				wanted[e.value] = true
			}
		}
	}
	rows := snapshot.RenderMarkdown()
	rows = rows[:strings.Index(rows, "## Steps")]
	for _, cells := range reported.FindAllStringSubmatch(rows, -1) {
		for name := range strings.SplitSeq(cells[1], ", ") {
			if name != "Reported reason" {
				wanted[name] = true
			}
		}
	}
	if len(wanted) < 15 {
		t.Errorf("only %d reasons found: %v", len(wanted), wanted)
	}
	var listed []string
	for _, marked := range reasonsMark.FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, strings.Fields(marked[1])...)
	}
	for name := range wanted {
		if !slices.Contains(listed, name) {
			t.Errorf("%s: no table lists reason %s", howTos, name)
		}
	}
}
