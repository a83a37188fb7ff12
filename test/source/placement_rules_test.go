package source

import (
	"go/ast"
	"strings"
	"testing"
)

// placementRules are the fields that determine what may be placed in a member. Each key is the end
// of the selector expression that names the field.
var placementRules = map[string]bool{
	".AllowedTopologies": true,
	"Spec.Storage":       true, "Storage.Classes": true, "Storage.Prefix": true, "Storage.DataSources": true,
	"Spec.Namespaces": true, "Namespaces.Allow": true, "Namespaces.Deny": true, "Namespaces.MatchLabels": true,
}

// outsidePlacement lists the functions outside package placement that name such a field, and why
// they do.
var outsidePlacement = map[string]string{
	"internal/cli/register/namespaces.go: adviseOnNamespaces": "calls package placement, and prints the labels that a namespace needs",
	"internal/cli/register/spec.go: ApplyTo":                  "writes the values of the flags",
	"internal/reflection/host.go: HostClassForRuling":         "writes the topologies of a reflected class",
	"internal/reflection/host.go: clusterIDsOf":               "reads back the topologies that HostClass wrote, to find the members that offer the class",
}

// TestOnlyPlacementReadsRules prevents other packages from deciding what may be placed in a member.
func TestOnlyPlacementReadsRules(t *testing.T) {
	found := map[string]bool{}
	for _, file := range product(t).files {
		if strings.HasPrefix(file.name, "internal/placement/") || strings.Contains(file.name, "/zz_generated.") {
			continue
		}
		for _, declaration := range file.Decls {
			in := file.name
			if function, ok := declaration.(*ast.FuncDecl); ok {
				in += ": " + function.Name.Name
			}
			if namesRule(declaration) {
				found[in] = true
			}
		}
	}
	onlyListed(t, found, outsidePlacement, "read a placement rule", "use internal/placement, or list it here and explain why it does not decide anything")
}

// namesRule reports whether a declaration names one of the fields. spec.storage.reflect is part of
// spec.storage, but not a placement rule.
func namesRule(declaration ast.Decl) bool {
	found, reflects := false, map[ast.Expr]bool{}
	ast.Inspect(declaration, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if selector.Sel.Name == "Reflect" {
			reflects[selector.X] = true
		}
		if of, ok := selector.X.(*ast.SelectorExpr); ok && placementRules[of.Sel.Name+"."+selector.Sel.Name] && !reflects[selector] {
			found = true
		}
		found = found || placementRules["."+selector.Sel.Name]
		return true
	})
	return found
}
