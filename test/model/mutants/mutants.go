// Package mutants checks that a model finds known defects.
package mutants

import (
	"bytes"
	"cmp"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xylem-io/xylem/test/fault/mutation"
)

// Check adds each mutant to the product's source, and checks that its test in the calling package
// finds it with -short. If only the full search finds it, the mutant must be marked Full. root is the
// path of the repository, relative to the package.
func Check(t *testing.T, root string, all []mutation.Mutation) {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			mutant := compile(t, root, m)
			if what := mutant.finding(t, "-test.short"); what != "" {
				if t.Logf("with -short: %s", what); m.Full {
					t.Error("the test finds this mutant with -short. Remove Full from its mutation")
				}
				return
			}
			what := mutant.finding(t)
			switch {
			case what == "":
				t.Errorf("the model does not report %v for this mutant: %s", m.Caught, m.Class)
			case !m.Full:
				t.Errorf("the test finds this mutant only without -short: %s. Raise a bound, or set Full in its mutation", what)
			default:
				t.Logf("only without -short: %s", what)
			}
		})
	}
}

// mutant is a test program of a model whose controllers have a defect.
type mutant struct {
	mutation.Mutation
	program string
}

func compile(t *testing.T, root string, m mutation.Mutation) mutant {
	t.Helper()
	dir, list, err := m.Overlay(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "mutant.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", list, "-o", program).CombinedOutput(); err != nil { //nolint:gosec // our own paths
		t.Fatalf("the mutant does not compile: %v\n%s", err, out)
	}
	return mutant{m, program}
}

// finding runs the mutant's test, and returns the finding that reveals the mutant, or "".
func (m mutant) finding(t *testing.T, flags ...string) string {
	t.Helper()
	args := append([]string{"-test.run", "^" + cmp.Or(m.Check, "TestCheck") + "$", "-test.timeout", "30m"}, flags...)
	out, err := exec.CommandContext(t.Context(), m.program, args...).CombinedOutput() //nolint:gosec // the program that we compiled
	if err != nil && !bytes.Contains(out, []byte(" worlds: ")) {
		t.Fatalf("unexpected result: %v\n%s", err, out)
	}
	if err == nil {
		return ""
	}
	return string(regexp.MustCompile(`\d+ worlds: [^\n]*(` + strings.Join(m.Caught, "|") + `)[^\n]*`).Find(out))
}
