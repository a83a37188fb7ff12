package source

import (
	"flag"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	// kubernetesGate explains an identifier with a word that Kubernetes uses.
	kubernetesGate = "Kubernetes' word: a feature gate, a scheduling gate or a readiness gate"
	// contractKey explains an identifier with the name of an annotation, which users read.
	contractKey = "named after the annotation xylem.io/steered-to or xylem.io/tried"
	// withItsPackage explains an identifier that exists until its package is revised.
)

// avoidedNames lists the identifiers with words that the style guide avoids, each with a reason. An unnecessary one
// fails the test.
var avoidedNames = map[string]string{
	"api/v1alpha1.AnnotationSteeredTo":   contractKey,
	"api/v1alpha1.AnnotationTried":       contractKey,
	"internal/controller/recovery.tried": contractKey,
	"internal/controller/rootpod.gate":   kubernetesGate,
	"internal/controller/rootpod.gates":  kubernetesGate,
	"internal/controller/source.steered": contractKey,
	"internal/mirror/podstatus.gate":     kubernetesGate,
}

// TestNamesAvoidWords checks that no identifier of the product has a word that the style guide replaces.
func TestNamesAvoidWords(t *testing.T) {
	found := product(t).declaredNames(func(identifier *ast.Ident, _ types.Object) bool { return avoidedIn(identifier.Name) != "" })
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, listed := avoidedNames[name]; !listed {
			t.Errorf("%s: %s: use another word: %s", found[name], name, avoidedIn(name[strings.LastIndex(name, ".")+1:]))
		}
	}
	for name := range avoidedNames {
		if _, exists := found[name]; !exists {
			t.Errorf("%s does not exist: remove it from avoidedNames", name)
		}
	}
}

func TestAvoidedIn(t *testing.T) {
	for name, want := range map[string]bool{
		"Book": true, "NewBook": true, "bookOf": true, "isTold": true, "Turns": true, "featureGate": false, "gateOf": true, "UIDTold": true,
		"Booking": false, "return": false, "navigate": false, "Returned": false, "essay": false, "ofLeaf": false,
	} {
		if got := avoidedIn(name) != ""; got != want {
			t.Errorf("%s is rejected: %t, want %t", name, got, want)
		}
	}
}

// shortNamesFile lists the short names, one a line: the package's directory and the name, and then the reason.
const shortNamesFile = "testdata/short-names.txt"

var shrinkShortNames = flag.Bool("shrink", false, "remove the names that no longer exist from "+shortNamesFile)

// TestShortNames checks that each package-level function, and each exported name, of at most four letters has a reason.
func TestShortNames(t *testing.T) {
	content, err := os.ReadFile(shortNamesFile)
	if err != nil {
		t.Fatal(err)
	}
	found, reasons, kept := product(t).declaredNames(needsReason), map[string]string{}, ""
	for line := range strings.Lines(string(content)) {
		name, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		if reasons[name] = strings.TrimSpace(reason); reasons[name] == "" {
			t.Errorf("%s: %s has no reason", shortNamesFile, name)
		}
		if _, exists := found[name]; exists {
			kept += line
		} else if !*shrinkShortNames {
			t.Errorf("%s: %s does not exist. Remove it with go test ./test/source -run TestShortNames -shrink", shortNamesFile, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, listed := reasons[name]; !listed {
			t.Errorf("%s: %s is too short to be understood, or found, outside its file", found[name], name)
		}
	}
	if *shrinkShortNames {
		if err := os.WriteFile(shortNamesFile, []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
