package model

import (
	"bytes"
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/xylem-io/xylem/test/fault/mutation"
)

var runMutants = flag.Bool("mutants", false, "put each of the model's mutants into the controllers, and have the model find it (a minute each)")

func TestMutants(t *testing.T) {
	if !*runMutants {
		t.Skip("takes a minute for each: -args -mutants")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutation.Model() {
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
					if !slices.ContainsFunc(m.Caught, func(invariant string) bool { return bytes.Contains(out, []byte(invariant)) }) {
						t.Errorf("that is none of %v:\n%s", m.Caught, out)
					}
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
