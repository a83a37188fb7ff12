package main

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMatrix(t *testing.T) {
	for name, tc := range map[string]struct {
		versions []string
		all      bool
		want     []string
	}{
		"one version":              {versions: []string{"1.37"}, want: []string{"1.37: 1.37, 1.37: stories: rules, main flow"}},
		"one version, all stories": {versions: []string{"1.37"}, all: true, want: []string{"1.37: 1.37, 1.37: stories: all"}},
		"three versions, and the first is not the newest": {versions: []string{"1.9", "1.10", "1.8"}, want: []string{
			"1.10: 1.10, 1.10: stories: rules, main flow",
			"1.9: 1.9, 1.9: stories: rules, main flow",
			"1.8: 1.8, 1.8: stories: rules, main flow",
			"1.10: 1.9, 1.8: stories: rules, main flow",
			"1.8: 1.10, 1.9: stories: rules, main flow",
			"1.9: 1.9, 1.9: upgrade to 1.10 under load",
			"1.8: 1.8, 1.8: upgrade to 1.10 under load",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range matrix(tc.versions, tc.all) {
				got = append(got, r.host+": "+r.members()+": "+r.what)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTable(t *testing.T) {
	rows := []row{
		{host: "1.36", member: []string{"1.36", "1.35"}, what: "stories", took: 61400 * time.Millisecond},
		{host: "1.35", member: []string{"1.35"}, what: "upgrade", took: time.Second, failed: errors.New("no")},
		{host: "1.34", member: []string{"1.34"}, what: "upgrade"},
	}
	want := `| Host | Members | Ran | Result | Seconds |
|---|---|---|---|---|
| 1.36 | 1.36, 1.35 | stories | passed | 61 |
| 1.35 | 1.35 | upgrade | **failed** | 1 |
| 1.34 | 1.34 | upgrade | not run |  |
`
	if diff := cmp.Diff(want, tableOf(rows)); diff != "" {
		t.Error(diff)
	}
}
