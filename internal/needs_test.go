package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// controllersOfVolumes lists the controllers that take the steps in lifecycle's tables, with their
// Owner.
var controllersOfVolumes = map[string]lifecycle.Owner{
	"rootpvc": lifecycle.RootPVC, "rootpv": lifecycle.RootPV, "leafpv": lifecycle.LeafPV, "hostvolume": lifecycle.HostVolume,
}

// TestStepsPresentWhatTheyNeed compares the evidence and proofs that the table lists for a step
// with those that the controller obtains in the step's case in act, and in the package's functions
// that this case calls.
func TestStepsPresentWhatTheyNeed(t *testing.T) {
	for controller, owner := range controllersOfVolumes {
		t.Run(controller, func(t *testing.T) {
			functions, provers := functionsOf(t, "controller", controller), functionsOf(t, "proof")
			taken := map[lifecycle.Step]bool{}
			for step, body := range stepsOf(functions["act"]) {
				taken[step] = true
				got := obtained{functions: functions, provers: provers, seen: map[string]bool{}, proofs: map[string]bool{}, evidence: map[string]bool{}}
				for _, statement := range body {
					got.look(statement, functions["act"])
				}
				want := lifecycle.NeedsOf(step)
				if diff := cmp.Diff(slices.Sorted(slices.Values(want.Evidence)), slices.Sorted(maps.Keys(got.evidence))); diff != "" {
					t.Errorf("evidence of step %s (-table +code):\n%s", step, diff)
				}
				if diff := cmp.Diff(slices.Sorted(slices.Values(want.Proofs)), slices.Sorted(maps.Keys(got.proofs))); diff != "" {
					t.Errorf("proofs of step %s (-table +code):\n%s", step, diff)
				}
			}
			for _, step := range lifecycle.StepsOf(owner) {
				if !taken[step] {
					t.Errorf("step %s in the table is not a step of %s", step, owner)
				}
			}
		})
	}
}

// functionsOf returns a package's functions, by name.
func functionsOf(t *testing.T, path ...string) map[string]*ast.FuncDecl {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(append(path, "*.go")...))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %v: %v", path, err)
	}
	functions := map[string]*ast.FuncDecl{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				functions[function.Name.Name] = function
			}
		}
	}
	return functions
}

// stepsOf returns the bodies of the cases in act, by step.
func stepsOf(act *ast.FuncDecl) map[lifecycle.Step][]ast.Stmt {
	bodies := map[lifecycle.Step][]ast.Stmt{}
	ast.Inspect(act, func(node ast.Node) bool {
		clause, ok := node.(*ast.CaseClause)
		if !ok {
			return true
		}
		for _, expression := range clause.List {
			if selector, ok := expression.(*ast.SelectorExpr); ok && selector.Sel.Name != "None" {
				bodies[lifecycle.Step(selector.Sel.Name)] = clause.Body
			}
		}
		return true
	})
	return bodies
}

// obtained collects the proofs that a step's code obtains from package proof, and the evidence that
// it passes to guarded.
type obtained struct {
	functions, provers     map[string]*ast.FuncDecl
	seen, proofs, evidence map[string]bool
}

// look follows the package's functions that are called or passed as arguments.
func (o *obtained) look(node ast.Node, in *ast.FuncDecl) {
	ast.Inspect(node, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			selector, ok := node.Fun.(*ast.SelectorExpr)
			switch {
			case ok && isProver(selector.X):
				o.proofs[selector.Sel.Name] = true
			case ok && (selector.Sel.Name == "DeleteClaim" || selector.Sel.Name == "SetDelete") && len(node.Args) > 2:
				o.evidence[o.typeOf(node.Args[len(node.Args)-1], in)] = true
			}
		case *ast.SelectorExpr:
			if name, ok := node.X.(*ast.Ident); ok && name.Name == "r" {
				o.follow(node.Sel.Name)
			}
		case *ast.Ident:
			if function := o.functions[node.Name]; function != nil && function.Recv == nil {
				o.follow(node.Name)
			}
		}
		return true
	})
}

func (o *obtained) follow(name string) {
	if function := o.functions[name]; function != nil && !o.seen[name] {
		o.seen[name] = true
		o.look(function.Body, function)
	}
}

// typeOf returns the evidence type of an expression: the type of a literal, or of the variable,
// parameter or result that the expression names.
func (o *obtained) typeOf(expression ast.Expr, in *ast.FuncDecl) string {
	if literal, ok := expression.(*ast.CompositeLit); ok {
		return evidenceType(literal.Type)
	}
	variable, ok := expression.(*ast.Ident)
	if !ok {
		return ""
	}
	found := ""
	ast.Inspect(in, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Field: // a parameter, or a named result
			if names(node.Names, variable.Name) {
				found = evidenceType(node.Type)
			}
		case *ast.ValueSpec:
			if names(node.Names, variable.Name) {
				found = evidenceType(node.Type)
			}
		case *ast.AssignStmt:
			call, ok := node.Rhs[0].(*ast.CallExpr)
			if name, isIdent := node.Lhs[0].(*ast.Ident); ok && isIdent && name.Name == variable.Name {
				found = o.resultOf(call)
			}
		}
		return true
	})
	return found
}

// resultOf returns the evidence type that a function in the package, or in package proof, returns.
func (o *obtained) resultOf(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	function := o.functions[selector.Sel.Name]
	if isProver(selector.X) {
		function = o.provers[selector.Sel.Name]
	}
	if function == nil || function.Type.Results == nil {
		return ""
	}
	return evidenceType(function.Type.Results.List[0].Type)
}

func names(idents []*ast.Ident, name string) bool {
	return slices.ContainsFunc(idents, func(ident *ast.Ident) bool { return ident.Name == name })
}

// evidenceType returns the name of a type in package proof.
func evidenceType(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.SelectorExpr:
		return expression.Sel.Name
	case *ast.Ident: // in package proof
		return expression.Name
	}
	return ""
}

// isProver reports whether an expression is a proof.Prover (the result of Proof, or a literal), or
// package placing or adoption.
func isProver(expression ast.Expr) bool {
	switch expression := expression.(type) {
	case *ast.Ident:
		return expression.Name == "placing" || expression.Name == "adoption"
	case *ast.CallExpr:
		selector, ok := expression.Fun.(*ast.SelectorExpr)
		return ok && selector.Sel.Name == "Proof"
	case *ast.CompositeLit:
		selector, ok := expression.Type.(*ast.SelectorExpr)
		return ok && selector.Sel.Name == "Prover"
	}
	return false
}
