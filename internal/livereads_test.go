package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// liveReads are the functions of the controllers of volumes that read a cluster live without
// package proof, with the reasons.
var liveReads = map[string]string{
	"hostvolume.claimOf":            "finds the claim to which a promise is returned, and destroys nothing",
	"hostvolume.neverUsed":          "finds the claim that requests a promise that no member has",
	"hostvolume.unchanged":          "passes the reader to package proof",
	"leafpod.leafPodGone":           "proves that a Pod was deleted",
	"leafpod.stillFails":            "decides again with the current Pod",
	"leafpv.adopt":                  "gives a volume to the claim that requests it, and destroys nothing",
	"leafpv.inTheWay":               "finds the owner of the conflicting object",
	"rootpvc.notCreated":            "finds the owner of the conflicting object",
	"rootpvc.inUse":                 "finds the member's claim that has a volume",
	"rootpvc.lookUpAttributesClass": "finds the VolumeAttributesClasses of both clusters",
	"rootpvc.rememberWithdrawn":     "reads the record that it writes",
	"rootpvc.unlessUsed":            "decides again with the current Pods",
	"rootpvc.stillAsked":            "gives a volume to the claim that requests it, and destroys nothing",
}

// TestOnlyProofProves prevents controllers of volumes from proving facts with live reads of their
// own.
func TestOnlyProofProves(t *testing.T) {
	found := map[string]bool{}
	for _, controller := range []string{"hostvolume", "leafpod", "leafpv", "promise", "recovery", "rootpv", "rootpvc"} {
		own, err := filepath.Glob(filepath.Join("controller", controller, "*.go"))
		if err != nil || len(own) == 0 {
			t.Fatalf("no files of controller %s: %v", controller, err)
		}
		below, err := filepath.Glob(filepath.Join("controller", controller, "*", "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Concat(own, below) {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declaration := range file.Decls {
				function, ok := declaration.(*ast.FuncDecl)
				if ok && readsLive(function) {
					found[controller+"."+function.Name.Name] = true
				}
			}
		}
	}
	onlyListed(t, found, liveReads, "read a cluster live", "use internal/proof, or list it here with the reason why it does not prove anything")
}

// onlyListed fails for functions that do something without being listed with a reason, and for
// listed ones that no longer do it.
func onlyListed(t *testing.T, found map[string]bool, reasons map[string]string, what, instead string) {
	t.Helper()
	for name := range found {
		if reasons[name] == "" {
			t.Errorf("%s does %s: %s", name, what, instead)
		}
	}
	for name := range reasons {
		if !found[name] {
			t.Errorf("%s does not %s any longer: remove it here", name, what)
		}
	}
}

// readsLive reports whether a function uses a live reader.
func readsLive(function *ast.FuncDecl) bool {
	found := false
	ast.Inspect(function, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		found = found || ok && (selector.Sel.Name == "HostLive" || selector.Sel.Name == "Live")
		return !found
	})
	return found
}
