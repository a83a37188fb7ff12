package source

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xylem-io/xylem/internal/proof"
)

// TestNeedsNameProofs checks that the proofs that proof.Needs names before a colon, and so the table of VOLUMES.md,
// exist.
func TestNeedsNameProofs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "internal", "proof", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	for _, need := range proof.Needs {
		proofs, _, _ := strings.Cut(need.Proof, ":")
		for name := range strings.SplitSeq(proofs, ", ") {
			if name != "as in a single cluster" && !slices.ContainsFunc(files, func(path string) bool { return declares(path, name) }) {
				t.Errorf("need of %q: package proof declares no %q", need.Who, name)
			}
		}
	}
}
