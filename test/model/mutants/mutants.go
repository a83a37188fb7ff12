// Package mutants checks that a model finds known defects.
package mutants

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xylem-io/xylem/test/fault/mutation"
)

// Check adds each mutant to the product's source, and checks that the test of the calling package
// finds it. root is the path of the repository, relative to the package. test returns the name of
// the test for a mutant. args are the arguments of the test's runs: each run visits more states than
// the previous one, until a run finds the mutant.
func Check(t *testing.T, root string, all []mutation.Mutation, test func(mutation.Mutation) string, args ...[]string) {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			_, list, err := m.Overlay(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			caught := regexp.MustCompile(`\d+ worlds: [^\n]*(` + strings.Join(m.Caught, "|") + `)[^\n]*`)
			for _, more := range args {
				command := slices.Concat([]string{"test", "-overlay", list, "-run", "^" + test(m) + "$", "-count", "1", "-timeout", "30m", ".", "-args"}, more)
				out, err := exec.CommandContext(t.Context(), "go", command...).CombinedOutput() //nolint:gosec // the tests of the models pass the arguments
				if what := caught.Find(out); err != nil && what != nil {
					t.Logf("with %s: %s", strings.Join(more, " "), what)
					return
				}
				if err != nil && !bytes.Contains(out, []byte(" worlds: ")) {
					t.Fatalf("unexpected result: %v\n%s", err, out)
				}
			}
			t.Errorf("the model does not report %v for this mutant: %s", m.Caught, m.Class)
		})
	}
}
