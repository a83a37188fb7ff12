package source

import (
	"go/ast"
	"testing"
)

// liveReadsWithoutProof lists the functions in the controllers of volumes and Pods that read a cluster live without
// package proof, and why they do.
var liveReadsWithoutProof = map[string]string{
	"hostvolume.readLiveClaim":       "finds the claim to which a promise is returned, and destroys nothing",
	"hostvolume.newProver":           "passes the reader to package proof",
	"leafpod.stillFailsLive":         "decides again with the current Pod",
	"leafpv.shareHostVolume":         "reads the attributes of a volume that the cache drops",
	"leafpv.handleConflictingVolume": "finds the owner of the conflicting object",
	"recovery.recheckStrandedLive":   "decides again with the current Pods",
	"rootpod.createLeafPod":          "finds the owner of the conflicting object",
	"rootpod.findReferenceInHost":    "reads Secrets, which are not watched in the host",
	"rootpod.readLeafPodLive":        "decides again with the current Pod",
	"rootpod.readRootPodLive":        "decides again with the current Pod",
	"rootpod.isMirroredLive":         "reads the host PV that account.Mirrors names",
	"rootpod.observeRootLive":        "decides again with the current claims",
	"rootpod.removeLeafPod":          "decides again with the current Pod",
	"rootpod.recheckCreateLive":      "decides again with the current namespace",
	"rootpod.recheckRemoveLive":      "decides again with the current nodes",
	"rootpvc.reportNotCreated":       "finds the owner of the conflicting object",
	"rootpvc.usedByOtherClaim":       "finds the member's claim that uses a volume",
	"rootpvc.lookUpAttributesClass":  "finds the VolumeAttributesClasses in both clusters",
	"rootpvc.reachesOtherVolumes":    "finds nodes for a volume, as nodesFor; the cache does not keep node affinities",
	"rootpvc.suitableNodes":          "finds nodes for a volume; the member's provisioner rejects a wrong one",
	"rootpvc.reportPlanProblem":      "finds out whether a populator handles the claim; only a report depends on it",
	"rootpvc.recordWithdrawnClaim":   "reads the record that it writes",
	"rootpvc.undoUnlessUsed":         "decides again with the current Pods",
}

// TestOnlyProofProves prevents these controllers from proving facts with their own live
// reads.
func TestOnlyProofProves(t *testing.T) {
	found := map[string]bool{}
	for _, controller := range []string{"hostvolume", "leafpod", "leafpv", "promise", "recovery", "rootpod", "rootpv", "rootpvc"} {
		files := product(t).filesBelow("internal/controller/" + controller)
		if len(files) == 0 {
			t.Fatalf("controller %s has no files", controller)
		}
		for _, file := range files {
			for _, declaration := range file.Decls {
				function, ok := declaration.(*ast.FuncDecl)
				if ok && readsLive(function) {
					found[controller+"."+function.Name.Name] = true
				}
			}
		}
	}
	onlyListed(t, found, liveReadsWithoutProof, "read a cluster live", "use internal/proof, or list it here and explain why it does not prove anything")
}

// onlyListed fails the test if a function does something forbidden (what) without being listed with
// a reason, or if a listed function no longer does it. instead is advice for the test's output.
func onlyListed(t *testing.T, found map[string]bool, reasons map[string]string, what, instead string) {
	t.Helper()
	for name := range found {
		if reasons[name] == "" {
			t.Errorf("%s must not %s: %s", name, what, instead)
		}
	}
	for name := range reasons {
		if !found[name] {
			t.Errorf("%s does not %s anymore: remove it here", name, what)
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
