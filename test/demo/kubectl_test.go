package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommandLine checks that a shell passes the arguments of a printed command to kubectl unchanged.
func TestCommandLine(t *testing.T) {
	tests := map[string][]string{
		"words":          {"get", "pod,pvc", "-n", "test-new", "volumesnapshot/monday", "--replicas=2"},
		"columns":        {"-o", `custom-columns=MEMBER:.metadata.labels.xylem\.io/cluster,LARGEST VOLUME:.maximumVolumeSize`},
		"a filter":       {"-o", `custom-columns=PROMISE:.status.conditions[?(@.type=="xylem.io/Promise")].message`},
		"JSON":           {"-p", `{"spec":{"storage":{"shared":[{"name":"shelf"}]}}}`},
		"a wildcard":     {"-o", "jsonpath={.spec.ephemeralContainers[*].name}"},
		"quotes":         {"exec", "pod", "--", "echo", `it's "$HOME" #1; ~`, ""},
		"two lines":      {"a\nb"},
		"a tilde":        {"~/file"},
		"an exclamation": {"hello!"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\0' `+commandLine(&view{}, args)).Output()
			if err != nil {
				t.Fatal(err)
			}
			want := append([]string{"kubectl"}, args...)
			if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
