package source

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xylem-io/xylem/internal/snapshot"
	"github.com/xylem-io/xylem/internal/states"
	"github.com/xylem-io/xylem/internal/volume/lifecycle"
)

// stepTables lists the tables, with the controllers that take their steps.
var stepTables = []struct {
	controllers map[string]states.Owner
	needs       func(states.Step) states.Needs
	reasons     func(states.Step) []string
	steps       func(states.Owner) []states.Step
}{
	{map[string]states.Owner{
		"rootpvc": lifecycle.RootPVC, "rootpv": lifecycle.RootPV, "leafpv": lifecycle.LeafPV, "hostvolume": lifecycle.HostVolume,
	}, lifecycle.NeedsOfStep, lifecycle.ReasonsOfStep, lifecycle.StepsOfOwner},
	{map[string]states.Owner{
		"rootsnapshot": snapshot.RootSnapshot, "leafsnapshot": snapshot.LeafSnapshot, "hostsnapshot": snapshot.HostSnapshot,
	}, snapshot.NeedsOfStep, snapshot.ReasonsOfStep, snapshot.StepsOwnedBy},
}

// reportingPackages lists the packages that report on behalf of these controllers.
var reportingPackages = map[string]string{
	"reporter": "internal/controller/rootpvc", "report": "internal/mirror/report", "volume": "internal/volume", "pvc": "internal/mirror/pvc", "placement": "internal/placement",
}

// reportingFields maps the reconcilers' fields, and the method PlacementMember, to the packages of their types.
var reportingFields = map[string]string{"reports": "reporter", "PlacementMember": "placement"}

// notFollowed lists functions that are not followed. Most only pass on a reason. The table's rows report the
// reasons of observer.
var notFollowed = []string{"ReportProblem", "SetPlacedCondition", "ReasonFailsClaim", "ReasonQuotesMember", "newClaimObserver"}

// TestStepsPresentWhatTheyNeed compares the evidence, proofs and reported reasons that the table lists
// for a step with those in the step's case in executeStep, and in the functions that this case calls.
func TestStepsPresentWhatTheyNeed(t *testing.T) {
	reasons, provers, others := reasonValues(t), map[string]*ast.FuncDecl{}, map[string]map[string]*ast.FuncDecl{}
	for _, dir := range []string{"internal/proof"} {
		maps.Copy(provers, functionsOf(t, dir))
	}
	for name, dir := range reportingPackages {
		others[name] = functionsOf(t, dir)
	}
	for _, table := range stepTables {
		for controller, owner := range table.controllers {
			t.Run(controller, func(t *testing.T) {
				functions := functionsOf(t, "internal/controller/"+controller)
				steps := stepsOf(functions["executeStep"])
				for step, body := range steps {
					got := stepEvidence{
						functions: functions, provers: provers, helpers: others, reasonValues: reasons,
						seen: map[*ast.FuncDecl]bool{}, proofs: map[string]bool{}, evidence: map[string]bool{}, reasons: map[string]bool{},
					}
					for _, statement := range body {
						got.look(statement, functions["executeStep"], functions)
					}
					want := table.needs(step)
					compareNeeds(t, step, "evidence", want.Evidence, got.evidence)
					compareNeeds(t, step, "proofs", want.Proofs, got.proofs)
					compareNeeds(t, step, "reported reasons", table.reasons(step), got.reasons)
				}
				for _, step := range table.steps(owner) {
					if _, taken := steps[step]; !taken {
						t.Errorf("step %s in the table is not a step of %s", step, owner)
					}
				}
			})
		}
	}
}

// compareNeeds compares what the table lists for a step with what the code does.
func compareNeeds(t *testing.T, step states.Step, what string, listed []string, done map[string]bool) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(slices.Values(listed)), slices.Sorted(maps.Keys(done))); diff != "" {
		t.Errorf("%s of step %s (-table +code):\n%s", what, step, diff)
	}
}

// functionsOf returns a package's functions, by name.
func functionsOf(t *testing.T, dir string) map[string]*ast.FuncDecl {
	t.Helper()
	functions := product(t).functionsIn(dir)
	if len(functions) == 0 {
		t.Fatalf("no functions in %s", dir)
	}
	return functions
}

// stepsOf returns the bodies of the cases in executeStep, by step.
func stepsOf(executeStep *ast.FuncDecl) map[states.Step][]ast.Stmt {
	bodies := map[states.Step][]ast.Stmt{}
	ast.Inspect(executeStep, func(node ast.Node) bool {
		clause, ok := node.(*ast.CaseClause)
		if !ok {
			return true
		}
		for _, expression := range clause.List {
			if selector, ok := expression.(*ast.SelectorExpr); ok && selector.Sel.Name != "None" {
				bodies[states.Step(selector.Sel.Name)] = clause.Body
			}
		}
		return true
	})
	return bodies
}

// destructiveMethods lists the methods of package guarded that the tables' steps call with evidence as the
// last argument.
var destructiveMethods = []string{
	"DeleteClaim", "DestroyClaim", "SetVolumePolicyDelete", "DeleteHostVolume", "DropHostVolume", "FreePromise",
	"DeleteSnapshot", "DestroySnapshot", "SetContentPolicyDelete", "DestroyLeafContent", "DropHostContent",
}

// stepEvidence collects the proofs that a step's code obtains from package proof, the evidence that it
// passes to guarded, and the reasons that it reports.
type stepEvidence struct {
	functions, provers map[string]*ast.FuncDecl
	helpers            map[string]map[string]*ast.FuncDecl
	reasonValues       map[string]string
	seen               map[*ast.FuncDecl]bool

	proofs, evidence, reasons map[string]bool
}

// look follows the package's functions that are called or passed as arguments, and those of helpers.
func (o *stepEvidence) look(node ast.Node, in *ast.FuncDecl, scope map[string]*ast.FuncDecl) {
	ast.Inspect(node, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			selector, ok := node.Fun.(*ast.SelectorExpr)
			switch {
			case ok && isProver(selector.X) && returnsEvidence(o.provers[selector.Sel.Name]):
				o.proofs[selector.Sel.Name] = true
			case ok && slices.Contains(destructiveMethods, selector.Sel.Name) && len(node.Args) > 2:
				o.evidence[o.typeOf(node.Args[len(node.Args)-1], in)] = true
			}
		case *ast.SelectorExpr:
			o.selects(node, scope)
			o.look(node.X, in, scope) // node.Sel may be a field with the name of a function
			return false
		case *ast.Ident:
			if function := scope[node.Name]; function != nil && function.Recv == nil {
				o.follow(function, scope)
			}
		}
		return true
	})
}

// selects handles pkg.Name, receiver.method and receiver.helper.method.
func (o *stepEvidence) selects(node *ast.SelectorExpr, scope map[string]*ast.FuncDecl) {
	of := ""
	switch x := node.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = reportingFields[x.Sel.Name]
	case *ast.CallExpr:
		if method, ok := x.Fun.(*ast.SelectorExpr); ok {
			of = reportingFields[method.Sel.Name]
		}
	}
	switch helper := o.helpers[of]; {
	case of == "v1alpha1":
		if reason, ok := o.reasonValues[node.Sel.Name]; ok {
			o.reasons[reason] = true
		}
	case helper != nil:
		o.follow(helper[node.Sel.Name], helper)
	case of == "r", of == "c", of == "m":
		o.follow(scope[node.Sel.Name], scope)
	}
}

func (o *stepEvidence) follow(function *ast.FuncDecl, scope map[string]*ast.FuncDecl) {
	if function != nil && function.Body != nil && !o.seen[function] && !slices.Contains(notFollowed, function.Name.Name) {
		o.seen[function] = true
		o.look(function.Body, function, scope)
	}
}

// reasonValues returns the values of the API's constants for reasons, by their names.
func reasonValues(t *testing.T) map[string]string {
	t.Helper()
	files := product(t).filesBelow("api/v1alpha1")
	if len(files) == 0 {
		t.Fatal("no files of the API")
	}
	values := map[string]string{}
	for _, file := range files {
		ast.Inspect(file.File, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				values[spec.Names[0].Name] = strings.Trim(literal.Value, `"`)
			}
			return true
		})
	}
	return values
}

// typeOf returns the evidence type of an expression: the type of a literal, or of the variable,
// parameter or result that the expression names.
func (o *stepEvidence) typeOf(expression ast.Expr, in *ast.FuncDecl) string {
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
			if hasName(node.Names, variable.Name) {
				found = evidenceType(node.Type)
			}
		case *ast.ValueSpec:
			if hasName(node.Names, variable.Name) {
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
func (o *stepEvidence) resultOf(call *ast.CallExpr) string {
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

// returnsEvidence reports whether a function of package proof does more than compare objects, and return a bool.
func returnsEvidence(prover *ast.FuncDecl) bool {
	if prover == nil || prover.Type.Results == nil {
		return false
	}
	results := prover.Type.Results.List
	only, ok := results[0].Type.(*ast.Ident)
	return len(results) > 1 || !ok || only.Name != "bool"
}

func hasName(idents []*ast.Ident, name string) bool {
	return slices.ContainsFunc(idents, func(ident *ast.Ident) bool { return ident.Name == name })
}

// evidenceType returns the name of a type in package proof or a subpackage.
func evidenceType(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.SelectorExpr:
		return expression.Sel.Name
	case *ast.Ident: // in package proof
		return expression.Name
	}
	return ""
}

// isProver reports whether an expression is a prover (the result of a function that returns one, or a literal), or
// package proof.
func isProver(expression ast.Expr) bool {
	switch expression := expression.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"proof"}, expression.Name)
	case *ast.CallExpr:
		selector, ok := expression.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains([]string{"NewProver", "newProver", "snapshotProver"}, selector.Sel.Name)
	case *ast.CompositeLit:
		selector, ok := expression.Type.(*ast.SelectorExpr)
		return ok && selector.Sel.Name == "Prover"
	}
	return false
}
