package model

import (
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/xylem-io/xylem/test/fault/mutation"
)

var runMutants = flag.Bool("mutants", false, "put each of the model's mutants into the controllers, and have the model find it (a minute each)")

const (
	leafPVDecide  = "internal/controller/leafpv/decide.go"
	leafPVAct     = "internal/controller/leafpv/act.go"
	rootPVCDecide = "internal/controller/rootpvc/decide.go"
)

// mutants are defects that the model has found, or that its design named. Those of the fault
// harness that the model can show are among them, by their names there.
func mutants(t *testing.T) []mutation.Mutation {
	t.Helper()
	all := []mutation.Mutation{
		{Name: "passes-over-deleted", Class: "a leaf PV that is being deleted is not held",
			Edits: []mutation.Edit{{File: leafPVDecide, Old: "	case o.root == nil:\n		return o.withoutRoot()\n	}\n	if why", New: "	case o.leaf.DeletionTimestamp != nil:\n		return nothing{}\n	case o.root == nil:\n		return o.withoutRoot()\n	}\n	if why"}}},
		{Name: "abandons-at-delete", Class: "a volume that is abandoned while it is destroyed stays at Delete",
			Edits: []mutation.Edit{{File: leafPVDecide, Old: "return o.keep(orphan{})", New: "return orphan{}"}}},
		{Name: "undoes", Class: "leaf_pv holds what root_pv destroys, while the cache of claims lags",
			Edits: []mutation.Edit{{File: leafPVDecide, Old: "(mirror.Releasing(o.host) || mirror.Ended(o.host))", New: "mirror.Releasing(o.host)"}}},
		{Name: "silent-while-deleted", Class: "a claim whose volume is being deleted before it is bound is Pending without a word",
			Edits: []mutation.Edit{{File: rootPVCDecide, Old: "return pv != nil && pv.DeletionTimestamp != nil", New: "return false && pv != nil"}}},
		{Name: "only-lost", Class: "a leaf claim stays that names a volume which went before they were bound",
			Edits: []mutation.Edit{{File: rootPVCDecide, Old: "o.leaf.Status.Phase != corev1.ClaimBound && len(o.mirrors) == 0", New: "o.leaf.Status.Phase == corev1.ClaimLost && len(o.mirrors) == 0"}}},
		{Name: "two-mirrors", Class: "a second volume is mirrored for a claim, while the cache of host PVs lags (N3)",
			Edits: []mutation.Edit{{File: leafPVAct, Old: "	if o.root.Spec.VolumeName == \"\" {\n		other", New: "	if o.root.Spec.VolumeName == \"never\" {\n		other"}}},
		{Name: "freed-at-delete", Class: "a volume that is freed while it is destroyed stays at Delete (N2)",
			Edits: []mutation.Edit{{File: leafPVDecide, Old: "	ref := o.host.Spec.ClaimRef\n	if ref == nil {", New: "	ref := o.host.Spec.ClaimRef\n	if ref != nil || ref == nil {\n		return false\n	}\n	if ref == nil {"}}},
	}
	shared := []string{"other-uid-unmirrored", "failed-is-not-ended", "absence-deletes", "forgetful-deletion"}
	for _, m := range mutation.All() {
		if slices.Contains(shared, m.Name) {
			all = append(all, m)
		}
	}
	return all
}

// TestMutantsFit keeps the list in step with the source.
func TestMutantsFit(t *testing.T) {
	for _, m := range mutants(t) {
		if _, err := m.Apply(filepath.Join("..", "..")); err != nil {
			t.Error(err)
		}
	}
}

func TestMutants(t *testing.T) {
	if !*runMutants {
		t.Skip("takes a minute for each: -args -mutants")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants(t) {
		t.Run(m.Name, func(t *testing.T) {
			_, list, err := m.Overlay(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			found := regexp.MustCompile(`\d+ worlds: [^\n]*\w[^\n]*`)
			for _, disruptions := range []string{"1", "2", "3"} {
				out, err := exec.CommandContext(t.Context(), "go", "test", "-overlay", list, "-run", "^TestCheck$", "-count", "1", "-timeout", "30m", ".", "-args", "-disruptions", disruptions).CombinedOutput()
				if what := found.Find(out); err != nil && what != nil {
					t.Logf("with %s disruptions: %s", disruptions, what)
					return
				}
				if err != nil {
					t.Fatalf("it ended otherwise: %v\n%s", err, out)
				}
			}
			t.Errorf("the model does not find that %s", m.Class)
		})
	}
}
