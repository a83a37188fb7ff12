package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xylem-io/xylem/test/fault/engine"
	"github.com/xylem-io/xylem/test/fault/mutation"
	"github.com/xylem-io/xylem/test/fault/scenario"
)

// section returns the columns of each row, except the header, of the table in a section of
// README.md.
func section(t *testing.T, title string) [][]string {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n## "+title+"\n")
	if !found {
		t.Fatalf("README.md has no section %q", title)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var rows [][]string
	for line := range strings.Lines(rest) {
		if inner, ok := strings.CutPrefix(strings.TrimSpace(line), "|"); ok {
			var row []string
			for column := range strings.SplitSeq(strings.TrimSuffix(inner, "|"), "|") {
				row = append(row, strings.TrimSpace(column))
			}
			rows = append(rows, row)
		}
	}
	if len(rows) < 3 {
		t.Fatalf("section %q has no table", title)
	}
	return rows[2:]
}

var quoted = regexp.MustCompile("`([a-z-]+)`")

// names returns the names in backquotes in a column.
func names(column string) []string {
	var all []string
	for _, match := range quoted.FindAllStringSubmatch(column, -1) {
		all = append(all, match[1])
	}
	return all
}

// shownBy returns the column that names a mutant's scenario and the kind of its fault.
func shownBy(t *testing.T, m mutation.Mutation) string {
	t.Helper()
	spec, err := specOf(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Faults) == 0 {
		return m.Scenario
	}
	return m.Scenario + ", " + string(spec.Faults[0].Kind)
}

// TestPageOfMutants checks that README.md has a row for each mutant, with its scenario, its fault
// and an oracle that caught it.
func TestPageOfMutants(t *testing.T) {
	want, got := map[string]string{}, map[string]string{}
	caught := map[string]string{}
	for _, row := range section(t, "Mutants") {
		name := strings.Trim(row[0], "`")
		if _, twice := got[name]; twice {
			t.Errorf("README.md has two rows for mutant %s", name)
		}
		got[name], caught[name] = row[2], row[3]
	}
	for _, m := range mutation.All() {
		want[m.Name] = shownBy(t, m)
		if by := caught[m.Name]; !slices.ContainsFunc(m.Caught, func(invariant string) bool { return strings.Contains(by, invariant+" ") }) {
			t.Errorf("according to README.md, mutant %s was caught by %q, not by an oracle of %v", m.Name, by, m.Caught)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the mutants in README.md, by scenario and fault: -want +got:\n%s", diff)
	}
}

// TestPageOfFaults checks that README.md explains each kind of fault once.
func TestPageOfFaults(t *testing.T) {
	var got, want []string
	for _, row := range section(t, "Faults") {
		got = append(got, names(row[0])...)
	}
	kinds, err := engine.ParseKinds("all")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		want = append(want, string(kind))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the kinds of faults in README.md: -want +got:\n%s", diff)
	}
}

// TestScenarios checks that each scenario has a unique name, a description, an action and an
// expected end, and that README.md names only existing scenarios.
func TestScenarios(t *testing.T) {
	known := map[string]bool{}
	for _, s := range scenario.All() {
		if known[s.Name] {
			t.Errorf("two scenarios have the name %s", s.Name)
		}
		known[s.Name] = true
		if s.About == "" || s.Act == nil || s.Settled == nil {
			t.Errorf("scenario %s lacks a description, an action or an end", s.Name)
		}
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`--scenario ([a-z-]+)`).FindAllStringSubmatch(string(page), -1) {
		if !known[match[1]] {
			t.Errorf("README.md has a command with scenario %q, which does not exist", match[1])
		}
	}
}
