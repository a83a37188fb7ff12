package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRow(t *testing.T) {
	tests := map[string]struct {
		column int
		text   string
		want   []string
	}{
		"host":   {0, "claim nginx-pvc created", []string{" +0.10s │ claim nginx-pvc created                  │                                  │"}},
		"member": {2, "claim nginx-pvc BOUND", []string{" +0.10s │                                          │                                  │ claim nginx-pvc BOUND"}},
		"too wide": {1, "claim nginx-pvc selected-node kosmos-cluster38", []string{
			" +0.10s │                                          │ claim nginx-pvc selected-node    │",
			"        │                                          │   kosmos-cluster38               │",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := row("+0.10s", test.column, 3, test.text)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, line := range append(got, heading([]string{"host", "cluster38", "cluster39"})...) {
				if length(line) > tableWidth {
					t.Errorf("a line has %d characters, want %d at most: %s", length(line), tableWidth, line)
				}
			}
		})
	}
}

func TestWrap(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"empty":       {"", []string{""}},
		"fits":        {"one two", []string{"one two"}},
		"breaks":      {"one two three four", []string{"one two", "  three", "  four"}},
		"a long word": {"aaaaaaaaaaaaa b", []string{"aaaaaaaaaaaaa", "  b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, wrap(test.text, 10)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNarrow(t *testing.T) {
	tests := map[string]struct {
		output string
		want   []string
	}{
		"empty columns are removed": {
			output: strings.Join([]string{
				"NAME         READY   STATUS    IP          NODE     NOMINATED NODE   READINESS GATES",
				"nginx-new    1/1     Running   10.65.1.1   node-1   <none>           <none>",
				"ledger-0     0/1     Pending   <none>      node-2   <none>           <none>",
			}, "\n") + "\n",
			want: []string{
				"NAME       READY  STATUS   IP         NODE",
				"nginx-new  1/1    Running  10.65.1.1  node-1",
				"ledger-0   0/1    Pending  <none>     node-2",
			},
		},
		"an unlimited size": {
			output: "MEMBER      LARGEST VOLUME\ncluster38   512Mi\ncluster39   9223372036854775807\n",
			want:   []string{"MEMBER     LARGEST VOLUME", "cluster38  512Mi", "cluster39  unlimited"},
		},
		"no rows": {output: "No resources found.\n", want: []string{"No resources found."}},
		"two tables stay separate": {
			output: "NAME   A\nx      1\n\nNAME   LONGER\ny      <none>\n",
			want:   []string{"NAME  A", "x     1", "", "NAME", "y"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, narrow(test.output)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
