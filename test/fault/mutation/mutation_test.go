package mutation

import (
	"slices"
	"testing"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// TestApply checks that each mutation still matches the source that it edits.
func TestApply(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range slices.Concat(All(), modelled(), ofOtherChecks(), ofClones(), ofNeeds(), ofPromises(), ofSnapshotModel(), Moves()) {
		if names[m.Name] || m.Class == "" || len(m.Caught) == 0 {
			t.Errorf("mutation %q: duplicate name, missing class, or no invariant that catches it", m.Name)
		}
		names[m.Name] = true
		if _, err := m.Apply(root); err != nil {
			t.Error(err)
		}
	}
}
