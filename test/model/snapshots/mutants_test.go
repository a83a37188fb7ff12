package snapshots

import (
	"bytes"
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xylem-io/xylem/test/fault/mutation"
)

var runMutants = flag.Bool("mutants", false, "add each of the model's mutants to the controllers, and check that the model finds it")

func TestMutants(t *testing.T) {
	if !*runMutants {
		t.Skip("takes half a minute for each mutant; run with -args -mutants")
	}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutation.Snapshots() {
		t.Run(m.Name, func(t *testing.T) {
			_, list, err := m.Overlay(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			caught := regexp.MustCompile(`\d+ worlds: [^\n]*(` + strings.Join(m.Caught, "|") + `)[^\n]*`)
			for _, disruptions := range []string{"1", "2"} {
				out, err := exec.CommandContext(t.Context(), "go", "test", "-overlay", list, "-run", "^TestCheck$", "-count", "1", "-timeout", "30m", ".", "-args", "-disruptions", disruptions).CombinedOutput()
				if what := caught.Find(out); err != nil && what != nil {
					t.Logf("with %s disruptions: %s", disruptions, what)
					return
				}
				if err != nil && !bytes.Contains(out, []byte(" worlds: ")) {
					t.Fatalf("unexpected result: %v\n%s", err, out)
				}
			}
			t.Errorf("the model does not find %v with this mutant: %s", m.Caught, m.Class)
		})
	}
}
