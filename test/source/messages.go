package source

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// messageFields are the names of string fields that hold messages.
var messageFields = []string{"Message", "Note"}

// inspecting lists the functions that inspect a text, by package. An empty list means all functions in
// the package.
var inspecting = map[string][]string{
	"strings": {
		"Compare", "Contains", "ContainsAny", "ContainsFunc", "ContainsRune", "Count", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "Fields",
		"FieldsFunc", "HasPrefix", "HasSuffix", "Index", "IndexAny", "IndexByte", "IndexFunc", "IndexRune", "LastIndex", "LastIndexAny",
		"LastIndexByte", "LastIndexFunc", "Split", "SplitAfter", "SplitAfterN", "SplitN", "SplitSeq", "TrimPrefix", "TrimSuffix",
	},
	"regexp":        nil,
	"strconv":       {"Atoi", "ParseBool", "ParseFloat", "ParseInt", "ParseUint", "Unquote"},
	"encoding/json": {"Unmarshal"},
}

// carrying lists the functions whose result is a message if an argument is a message, by package.
var carrying = map[string][]string{
	"strings": {"Clone", "Join", "Replace", "ReplaceAll", "ToLower", "ToUpper", "Trim", "TrimFunc", "TrimLeft", "TrimRight", "TrimSpace"},
	"fmt":     {"Sprint", "Sprintf", "Sprintln"},
}

// inspection is a place that inspects a message.
type inspection struct {
	function, how string
	at            token.Position
}

// follower records what holds a message: variables, parameters, fields and functions' results.
type follower struct {
	*program
	holds   map[types.Object]bool
	results map[*types.Func]bool
	changed bool
	found   map[string]inspection
}

// parsing lists the packages that may inspect messages: wording parses those of other programs, and
// bundle removes credentials from texts that leave the cluster.
var parsing = []string{module + "internal/wording", module + "internal/cli/bundle"}

// inspections returns all places in the program that inspect a message, except those in the packages
// of parsing.
func inspections(p *program) []inspection {
	f := &follower{program: p, holds: map[types.Object]bool{}, results: map[*types.Func]bool{}}
	for f.changed = true; f.changed; {
		f.changed, f.found = false, map[string]inspection{}
		for fn, decl := range p.functions {
			if !slices.Contains(parsing, fn.Pkg().Path()) {
				f.function(fn, decl)
			}
		}
	}
	all := make([]inspection, 0, len(f.found))
	for _, i := range f.found {
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b inspection) int { return cmp.Compare(a.at.String(), b.at.String()) })
	return all
}

// function follows the messages within one function.
func (f *follower) function(fn *types.Func, decl *ast.FuncDecl) {
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			f.assign(n.Lhs, n.Rhs)
		case *ast.ValueSpec:
			names := make([]ast.Expr, len(n.Names))
			for i, name := range n.Names {
				names[i] = name
			}
			f.assign(names, n.Values)
		case *ast.KeyValueExpr:
			f.assign([]ast.Expr{n.Key}, []ast.Expr{n.Value})
		case *ast.ReturnStmt:
			if !f.results[fn] && slices.ContainsFunc(n.Results, f.message) {
				f.results[fn], f.changed = true, true
			}
		case *ast.CallExpr:
			f.call(fn, n)
		case *ast.BinaryExpr:
			f.compare(fn, n)
		case *ast.SwitchStmt:
			if n.Tag != nil && f.message(n.Tag) {
				f.note(fn, "a switch", n.Pos())
			}
		}
		return true
	})
}

// assign marks the variables to which a message is assigned.
func (f *follower) assign(to, from []ast.Expr) {
	for i, value := range from {
		if f.message(value) && len(to) > i {
			f.mark(to[i])
		}
	}
}

func (f *follower) mark(e ast.Expr) {
	if selector, ok := e.(*ast.SelectorExpr); ok {
		e = selector.Sel
	}
	if name, ok := e.(*ast.Ident); ok && isString(f.info.TypeOf(name)) {
		f.hold(f.info.ObjectOf(name))
	}
}

// hold marks a variable, a parameter or a field permanently. It ignores fields in other modules'
// types, because messageFields lists those by name.
func (f *follower) hold(obj types.Object) {
	if obj != nil && obj.Pkg() != nil && strings.HasPrefix(obj.Pkg().Path(), module) && !f.holds[obj] {
		f.holds[obj], f.changed = true, true
	}
}

// call records a call that inspects a message, or marks the parameters of one of Xylem's functions.
func (f *follower) call(in *types.Func, call *ast.CallExpr) {
	callee := f.callee(call)
	if callee == nil || callee.Pkg() == nil {
		return
	}
	messages := slices.ContainsFunc(call.Args, f.message)
	if !messages {
		return
	}
	if names, ok := inspecting[callee.Pkg().Path()]; ok && (names == nil || slices.Contains(names, callee.Name())) {
		f.note(in, path.Base(callee.Pkg().Path())+"."+callee.Name(), call.Pos())
		return
	}
	signature := callee.Signature()
	if !strings.HasPrefix(callee.Pkg().Path(), module) || callee.Pkg().Path() == module+"internal/wording" {
		return
	}
	for i, argument := range call.Args {
		if i >= signature.Params().Len() || signature.Variadic() && i >= signature.Params().Len()-1 || !f.message(argument) {
			continue
		}
		// For an instance of a generic function, use the declared parameter.
		if parameter := callee.Origin().Signature().Params().At(i); isString(parameter.Type()) {
			f.hold(parameter)
		}
	}
}

// compare records a comparison of a message, except with another message or with "".
func (f *follower) compare(in *types.Func, e *ast.BinaryExpr) {
	if !slices.Contains([]token.Token{token.EQL, token.NEQ, token.LSS, token.GTR, token.LEQ, token.GEQ}, e.Op) || f.message(e.X) == f.message(e.Y) {
		return
	}
	for _, side := range []ast.Expr{e.X, e.Y} {
		if value := f.info.Types[side].Value; value != nil && value.String() == `""` {
			return
		}
	}
	if isString(f.info.TypeOf(e.X)) {
		f.note(in, e.Op.String(), e.Pos())
	}
}

// message reports whether an expression is a message.
func (f *follower) message(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.message(e.X)
	case *ast.Ident:
		return f.holds[f.info.ObjectOf(e)]
	case *ast.SelectorExpr:
		field, ok := f.info.Uses[e.Sel].(*types.Var)
		return ok && field.IsField() && isString(field.Type()) && (slices.Contains(messageFields, field.Name()) || f.holds[field])
	case *ast.BinaryExpr:
		return e.Op == token.ADD && isString(f.info.TypeOf(e)) && (f.message(e.X) || f.message(e.Y))
	case *ast.SliceExpr:
		return f.message(e.X)
	case *ast.CallExpr:
		return f.result(e)
	}
	return false
}

// result reports whether a call returns a message.
func (f *follower) result(call *ast.CallExpr) bool {
	if conversion := f.info.Types[call.Fun]; conversion.IsType() {
		return len(call.Args) == 1 && f.message(call.Args[0])
	}
	callee := f.callee(call)
	switch {
	case callee == nil || callee.Pkg() == nil:
		return callee != nil && callee.Name() == "Error" // the Error method of the error interface
	case callee.Name() == "Error" && callee.Signature().Recv() != nil:
		return true
	case callee.Signature().Results().Len() != 1 || !isString(callee.Signature().Results().At(0).Type()):
		return false
	}
	return f.results[callee.Origin()] ||
		slices.Contains(carrying[callee.Pkg().Path()], callee.Name()) && slices.ContainsFunc(call.Args, f.message)
}

func (f *follower) note(in *types.Func, how string, at token.Pos) {
	position := f.fset.Position(at)
	name := in.Name()
	if receiver := in.Signature().Recv(); receiver != nil {
		name = types.TypeString(receiver.Type(), func(*types.Package) string { return "" }) + "." + name
	}
	f.found[position.String()] = inspection{
		function: fmt.Sprintf("%s.%s", strings.TrimPrefix(in.Pkg().Path(), module), strings.TrimPrefix(name, "*")), how: how, at: position,
	}
}

func isString(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}
