package source

import (
	"go/ast"
	"strings"
	"testing"
)

// placementAnnotations are the annotations that determine a claim's member.
var placementAnnotations = map[string]bool{"AnnSelectedNode": true, "AnnotationPlacedIn": true, "AnnotationSteeredTo": true, "AnnotationTried": true, "AnnotationSource": true}

// TestPlacementWritesConflict prevents two controllers from acting on one claim at the same
// time. Several controllers change the annotations that determine a claim's member: each member's
// root_pvc, recovery, host_claim, source, host_volume and, when a member is deregistered,
// cluster_registration. Each uses guarded.AnnotateClaim, which sends the claim's resourceVersion.
// If two controllers decide on the same state, one gets a conflict and reads the claim again.
func TestPlacementWritesConflict(t *testing.T) {
	p, writers := product(t), 0
	for _, pkg := range p.packages {
		dir := strings.TrimPrefix(pkg.Path(), module)
		if !strings.HasPrefix(dir, "internal/controller/") {
			continue
		}
		functions := p.functionsIn(dir)
		for name, function := range functions {
			if function.Body == nil || !writesPlacement(function) {
				continue
			}
			writers++
			if !callsAnnotateClaim(functions, function, map[string]bool{}) {
				t.Errorf("%s.%s writes a claim's placement without AnnotateClaim", dir, name)
			}
		}
	}
	if writers < 5 {
		t.Errorf("found only %d functions that write a claim's placement, want at least 5: writesPlacement no longer finds them", writers)
	}
}

// writesPlacement reports whether a function sets or deletes one of the placementAnnotations.
func writesPlacement(function *ast.FuncDecl) bool {
	found := false
	ast.Inspect(function.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.AssignStmt:
			for _, to := range node.Lhs {
				if index, ok := to.(*ast.IndexExpr); ok && isPlacement(index.Index) {
					found = true
				}
			}
		case *ast.CallExpr:
			if name, ok := node.Fun.(*ast.Ident); ok && name.Name == "delete" && len(node.Args) == 2 && isPlacement(node.Args[1]) {
				found = true
			}
		}
		return !found
	})
	return found
}

func isPlacement(expression ast.Expr) bool {
	selector, ok := expression.(*ast.SelectorExpr)
	return ok && placementAnnotations[selector.Sel.Name]
}

// callsAnnotateClaim reports whether a function calls AnnotateClaim, directly or through another function.
func callsAnnotateClaim(functions map[string]*ast.FuncDecl, function *ast.FuncDecl, seen map[string]bool) bool {
	found := false
	ast.Inspect(function.Body, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || found {
			return !found
		}
		if selector.Sel.Name == "AnnotateClaim" {
			found = true
		} else if next := functions[selector.Sel.Name]; next != nil && next.Body != nil && !seen[selector.Sel.Name] {
			seen[selector.Sel.Name] = true
			found = callsAnnotateClaim(functions, next, seen)
		}
		return !found
	})
	return found
}
