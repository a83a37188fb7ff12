package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithTotal(t *testing.T) {
	entries := []entry{
		{Command: "random", Runs: 10, Faults: 18, Missed: 2, Minutes: 3},
		{Command: "enumerate", Runs: 5, Faults: 5, Violations: 1, Minutes: 1},
		{Command: "random", Runs: 1, Faults: 1, Missed: 1, Errors: 1},
	}
	table := `| | runs | faults | not reached | violations | could not run | minutes |
|---|---|---|---|---|---|---|
| enumerate | 5 | 5 | 0 | 1 | 0 | 1 |
| random | 11 | 19 | 3 | 0 | 1 | 3 |
| **all** | 16 | 24 | 3 | 1 | 1 | 4 |
`
	for name, tt := range map[string]struct{ page, want string }{
		"no total yet":           {"a\n" + totalBegin + totalEnd + "b\n", "a\n" + totalBegin + table + totalEnd + "b\n"},
		"an older total":         {"a\n" + totalBegin + "x\n" + totalEnd, "a\n" + totalBegin + table + totalEnd},
		"no markers in the page": {"a\n" + totalBegin, "a\n" + totalBegin},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, withTotal(tt.page, entries)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
