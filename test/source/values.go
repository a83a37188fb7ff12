package source

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// maxAssignments is the maximum number of assignments through which a value is traced.
const maxAssignments = 8

// assigned is an assigned expression. For a call with several results, result is the index of the
// result that is assigned.
type assigned struct {
	expr   ast.Expr
	result int
}

// sidesOf returns the caches that a reader may read from. A side that begins with a question mark
// describes an unknown reader.
func (w *walk) sidesOf(e ast.Expr, in *frame, level int) []side {
	e = ast.Unparen(e)
	if level > maxAssignments {
		return nil
	}
	switch e := e.(type) {
	case *ast.SelectorExpr:
		field, ok := w.info.Uses[e.Sel].(*types.Var)
		if !ok || !field.IsField() {
			break
		}
		if known := in.assigned[field.Origin()]; readerFields[w.fieldName(field)] == "" && len(known) > 0 {
			return w.sidesOfAll(known, in, level)
		}
		if s := readerFields[w.fieldName(field)]; s != "" {
			return []side{s}
		}
		return []side{side("?the reader " + w.fieldName(field) + " is not in the table")}
	case *ast.Ident:
		variable := w.info.Uses[e]
		if bound, ok := in.sides[variable]; ok {
			return bound
		}
		return w.sidesOfAll(in.assigned[variable], in, level)
	case *ast.UnaryExpr:
		return w.sidesOf(e.X, in, level+1)
	case *ast.CallExpr:
		return w.sidesOfCall(e)
	}
	return nil
}

// sidesOfCall returns the caches that the reader which a function returns may read from.
func (w *walk) sidesOfCall(e *ast.CallExpr) []side {
	f := w.declaredCallee(e)
	if f == nil {
		return nil
	}
	switch path, name := f.Pkg().Path(), f.Name(); {
	case path == "sigs.k8s.io/controller-runtime/pkg/cluster" && name == "GetCache": // the manager's cache is the host's
		return []side{hostSide}
	case path == module+"internal/member" && slices.Contains([]string{"LeafSnapshotCache", "LeafAttachmentCache", "LeafBudgetCache", "LeafServiceCache"}, name):
		return []side{leafSide}
	case path == module+"internal/member" && name == "SecretReader":
		return []side{liveSide}
	}
	return nil
}

func (w *walk) sidesOfAll(all []assigned, in *frame, level int) []side {
	var found []side
	for _, a := range all {
		found = append(found, w.sidesOf(a.expr, in, level+1)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// kindsOf returns the possible kinds of an object, or of the items in a list.
func (w *walk) kindsOf(e ast.Expr, in *frame, level int) []string {
	e = ast.Unparen(e)
	if level > maxAssignments {
		return nil
	}
	if kind := kindOf(subst(w.info.TypeOf(e), in.targs)); kind != "" {
		return []string{kind}
	}
	var from []assigned
	switch e := e.(type) {
	case *ast.Ident:
		variable := w.info.Uses[e]
		if bound := in.kinds[variable]; len(bound) > 0 {
			return bound
		}
		from = in.assigned[variable]
	case *ast.SelectorExpr:
		if field, ok := w.info.Uses[e.Sel].(*types.Var); ok {
			from = in.assigned[field.Origin()]
		}
	case *ast.TypeAssertExpr:
		from = []assigned{{expr: e.X}}
	case *ast.UnaryExpr:
		from = []assigned{{expr: e.X}}
	}
	var found []string
	for _, a := range from {
		if call, ok := a.expr.(*ast.CallExpr); ok {
			found = append(found, w.kindsReturned(call, a.result, level+1)...)
			continue
		}
		found = append(found, w.kindsOf(a.expr, in, level+1)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// kindsReturned returns the possible kinds of a function's result.
func (w *walk) kindsReturned(call *ast.CallExpr, result, level int) []string {
	f := w.declaredCallee(call)
	if f == nil || w.functions[f] == nil {
		return nil
	}
	in := &frame{assigned: w.assignments(w.functions[f].Body)}
	var found []string
	ast.Inspect(w.functions[f].Body, func(n ast.Node) bool {
		if returned, ok := n.(*ast.ReturnStmt); ok && result < len(returned.Results) {
			found = append(found, w.kindsOf(returned.Results[result], in, level)...)
		}
		return true
	})
	return found
}

// kindOf returns the kind of a concrete object or list, or "".
func kindOf(t types.Type) string {
	named, ok := deref(t).(*types.Named)
	if !ok {
		return ""
	}
	fields, ok := named.Underlying().(*types.Struct)
	if !ok {
		return ""
	}
	for i := range fields.NumFields() {
		if name := fields.Field(i).Name(); name == "Items" {
			return strings.TrimSuffix(named.Obj().Name(), "List")
		}
	}
	return named.Obj().Name()
}

// assignments returns a function's assignments to variables, loop variables over literals, fields
// in literals, and parameters of the function's own function literals.
func (p *program) assignments(body *ast.BlockStmt) map[types.Object][]assigned {
	all := map[types.Object][]assigned{}
	literals := map[types.Object]*ast.FuncLit{}
	assign := func(to, value ast.Expr, result int) {
		name, ok := to.(*ast.Ident)
		if !ok {
			return
		}
		obj := p.info.ObjectOf(name)
		all[obj] = append(all[obj], assigned{value, result})
		if literal, ok := value.(*ast.FuncLit); ok {
			literals[obj] = literal
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i := range n.Lhs {
				if len(n.Lhs) == len(n.Rhs) {
					assign(n.Lhs[i], n.Rhs[i], 0)
				} else {
					assign(n.Lhs[i], n.Rhs[0], i)
				}
			}
		case *ast.ValueSpec:
			for i := range n.Values {
				assign(n.Names[i], n.Values[i], 0)
			}
		case *ast.RangeStmt:
			if list, ok := n.X.(*ast.CompositeLit); ok && n.Value != nil {
				for _, element := range list.Elts {
					assign(n.Value, element, 0)
				}
			}
		case *ast.CompositeLit:
			p.fields(n, all)
		}
		return true
	})
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name, ok := call.Fun.(*ast.Ident); ok && literals[p.info.Uses[name]] != nil {
				p.pass(literals[p.info.Uses[name]], call.Args, all)
			}
		}
		return true
	})
	return all
}

// fields records the assignments to fields in a struct literal.
func (p *program) fields(literal *ast.CompositeLit, into map[types.Object][]assigned) {
	structure, ok := deref(p.info.TypeOf(literal)).Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if name, ok := pair.Key.(*ast.Ident); ok {
				if field, ok := p.info.Uses[name].(*types.Var); ok {
					into[field.Origin()] = append(into[field.Origin()], assigned{expr: pair.Value})
				}
			}
		} else if i < structure.NumFields() {
			field := structure.Field(i).Origin()
			into[field] = append(into[field], assigned{expr: element})
		}
	}
}

// pass records the possible values of a function literal's parameters.
func (p *program) pass(literal *ast.FuncLit, args []ast.Expr, into map[types.Object][]assigned) {
	i := 0
	for _, group := range literal.Type.Params.List {
		for _, name := range group.Names {
			if i < len(args) {
				obj := p.info.Defs[name]
				into[obj] = append(into[obj], assigned{expr: args[i]})
			}
			i++
		}
	}
}

// fieldName returns a struct field's package, type and name, as in readerFields.
func (p *program) fieldName(field *types.Var) string {
	field = field.Origin()
	for _, pkg := range p.packages {
		if pkg != field.Pkg() {
			continue
		}
		for _, name := range pkg.Scope().Names() {
			if structure, ok := pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
				for i := range structure.NumFields() {
					if structure.Field(i) == field {
						return pkg.Name() + "." + name + "." + field.Name()
					}
				}
			}
		}
	}
	return field.Name()
}

// isReader reports whether a parameter of this type may be a reader.
func isReader(t types.Type) bool { return hasMethods(t, "Get", "List") }

// isObject reports whether a parameter of this type is an object or a list of any kind.
func isObject(t types.Type) bool { return hasMethods(t, "GetObjectKind", "DeepCopyObject") }

func hasMethods(t types.Type, names ...string) bool {
	if !types.IsInterface(t) {
		return false
	}
	for _, name := range names {
		if method, _, _ := types.LookupFieldOrMethod(t, false, nil, name); method == nil {
			return false
		}
	}
	return true
}

func deref(t types.Type) types.Type {
	if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
		t = pointer.Elem()
	}
	return types.Unalias(t)
}

// bindTypes maps type parameters to their arguments.
func bindTypes(parameters *types.TypeParamList, args *types.TypeList, in map[*types.TypeParam]types.Type) map[*types.TypeParam]types.Type {
	all := map[*types.TypeParam]types.Type{}
	for i := range min(parameters.Len(), args.Len()) {
		all[parameters.At(i)] = subst(args.At(i), in)
	}
	return all
}

// subst replaces type parameters in a type with their arguments.
func subst(t types.Type, by map[*types.TypeParam]types.Type) types.Type {
	switch t := types.Unalias(t).(type) {
	case *types.TypeParam:
		if to, ok := by[t]; ok {
			return to
		}
	case *types.Pointer:
		return types.NewPointer(subst(t.Elem(), by))
	case *types.Named:
		if t.TypeArgs().Len() == 0 {
			return t
		}
		args := make([]types.Type, 0, t.TypeArgs().Len())
		for i := range t.TypeArgs().Len() {
			args = append(args, subst(t.TypeArgs().At(i), by))
		}
		if instance, err := types.Instantiate(nil, t.Origin(), args, false); err == nil {
			return instance
		}
	}
	return t
}

// describe returns the names of type arguments.
func describe(targs map[*types.TypeParam]types.Type) string {
	names := make([]string, 0, len(targs))
	for _, t := range targs {
		names = append(names, types.TypeString(t, func(*types.Package) string { return "" }))
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// String returns a text that is unique to the binding.
func (b binding) String() string {
	text := []string{describe(b.targs)}
	for _, obj := range slices.SortedFunc(maps.Keys(b.sides), byPosition) {
		text = append(text, fmt.Sprint(obj.Name(), b.sides[obj]))
	}
	for _, obj := range slices.SortedFunc(maps.Keys(b.kinds), byPosition) {
		text = append(text, fmt.Sprint(obj.Name(), b.kinds[obj]))
	}
	return strings.Join(text, "|")
}

func byPosition(a, b types.Object) int { return int(a.Pos()) - int(b.Pos()) }
