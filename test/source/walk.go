package source

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// binding contains the arguments of a function call that affect the analysis.
type binding struct {
	targs map[*types.TypeParam]types.Type
	// sides maps parameters that are readers to their caches. kinds maps parameters that are objects
	// to their kinds.
	sides map[types.Object][]side
	kinds map[types.Object][]string
}

// walk follows all calls from one function.
type walk struct {
	*program
	visited                      map[string]bool
	reads, watches               map[access]string
	unknownReads, unknownWatches []string
}

func newWalk(p *program) *walk {
	return &walk{program: p, visited: map[string]bool{}, reads: map[access]string{}, watches: map[access]string{}}
}

// frame is a function that walk is following.
type frame struct {
	binding
	// assigned lists the expressions that may be assigned to a variable or to a field in a literal.
	assigned map[types.Object][]assigned
}

// follow follows all calls that a function with these arguments may make.
func (w *walk) follow(f *types.Func, b binding) {
	decl := w.functions[f]
	if decl == nil {
		return // a function in another module
	}
	key := f.FullName() + b.String()
	if w.visited[key] {
		return
	}
	w.visited[key] = true
	in := &frame{binding: b, assigned: w.assignments(decl.Body)}
	called := map[ast.Expr]bool{}
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called[function(n)] = true
			w.call(n, in)
		case *ast.SelectorExpr:
			called[n.Sel] = called[n.Sel] || called[n]
			w.mention(n.Sel, called, in)
		case *ast.Ident:
			w.mention(n, called, in)
		}
		return true
	})
}

// mention follows a function that is used as a value instead of called. It may be called later,
// with unknown arguments.
func (w *walk) mention(name *ast.Ident, called map[ast.Expr]bool, in *frame) {
	f, ok := w.info.Uses[name].(*types.Func)
	if !ok || called[name] {
		return
	}
	called[name] = true
	b := binding{}
	if instance, ok := w.info.Instances[name]; ok {
		b.targs = bindTypes(f.Origin().Signature().TypeParams(), instance.TypeArgs, in.targs)
	}
	w.follow(f.Origin(), b)
}

// call records a read or a watch, or follows the call.
func (w *walk) call(call *ast.CallExpr, in *frame) {
	f := w.declaredCallee(call)
	if f == nil {
		return // a conversion or a function value; function literals are examined where they are defined
	}
	receiver, _ := function(call).(*ast.SelectorExpr)
	switch {
	case w.accesses(call, f, receiver, in):
	case !strings.HasPrefix(f.Pkg().Path(), module):
	case receiver != nil && types.IsInterface(w.info.TypeOf(receiver.X)):
		for _, method := range w.implementations(f) {
			w.follow(method, w.bind(call, method, in))
		}
	default:
		w.follow(f, w.bind(call, f, in))
	}
}

// watchingCall is a function that adds a watch. The argument at index object determines the kind. If side
// is empty, the first argument determines the side.
type watchingCall struct {
	path, name string
	side       side
	object     int
}

var watchingCalls = []watchingCall{
	{"sigs.k8s.io/controller-runtime/pkg/builder", "For", hostSide, 0},
	{"sigs.k8s.io/controller-runtime/pkg/builder", "Owns", hostSide, 0},
	{"sigs.k8s.io/controller-runtime/pkg/builder", "Watches", hostSide, 0},
	{"sigs.k8s.io/controller-runtime/pkg/builder", "WatchesMetadata", hostSide, 0},
	{"sigs.k8s.io/controller-runtime/pkg/source", "Kind", "", 1},
	{module + "internal/member", "RootObjectSource", hostSide, 0},
	{module + "internal/member", "LeafObjectSource", leafSide, 0},
	{module + "internal/member", "LeafSnapshotSource", leafSide, 0},
	{module + "internal/member", "LeafAttachmentSource", leafSide, 0},
	{module + "internal/member", "LeafBudgetSource", leafSide, 0},
	{module + "internal/member", "LeafServiceSource", leafSide, 0},
	{module + "internal/route", "OnDemandSource", hostSide, 1},
	{module + "internal/member", "HostSnapshotSource", hostSide, 0},
	{module + "internal/route", "EventSource", hostSide, 0}, // LeafSnapshotSource, LeafAttachmentSource and LeafServiceSource also call it
}

// accesses records a call that reads or watches, and returns false for other calls.
func (w *walk) accesses(call *ast.CallExpr, f *types.Func, receiver *ast.SelectorExpr, in *frame) bool {
	path, name := f.Pkg().Path(), f.Name()
	switch {
	case path == "sigs.k8s.io/controller-runtime/pkg/client" && (name == "Get" || name == "List") && receiver != nil && len(call.Args) > 1:
		object := call.Args[1]
		if name == "Get" {
			object = call.Args[2]
		}
		w.record(w.reads, &w.unknownReads, call, w.sidesOf(receiver.X, in, 0), w.kindsOf(object, in, 0))
		return true
	case path == module+"internal/route" && name == "VisitObjects": // it reads from the host's informers
		w.record(w.reads, &w.unknownReads, call, []side{hostSide}, w.kindsOf(call.Args[1], in, 0))
		return true
	}
	i := slices.IndexFunc(watchingCalls, func(s watchingCall) bool { return s.path == path && s.name == name })
	if i < 0 {
		return false
	}
	sides := []side{watchingCalls[i].side}
	if watchingCalls[i].side == "" {
		sides = w.sidesOf(call.Args[0], in, 0)
	}
	w.record(w.watches, &w.unknownWatches, call, sides, w.kindsOf(call.Args[watchingCalls[i].object], in, 0))
	return true
}

// record records an access to each kind on each side.
func (w *walk) record(into map[access]string, unknown *[]string, call *ast.CallExpr, sides []side, kinds []string) {
	where := w.fset.Position(call.Pos()).String()
	if len(sides) == 0 {
		*unknown = append(*unknown, where+": unknown reader")
	}
	if len(kinds) == 0 && !slices.Equal(sides, []side{liveSide}) {
		*unknown = append(*unknown, where+": unknown kind")
	}
	for _, s := range sides {
		if strings.HasPrefix(string(s), "?") {
			*unknown = append(*unknown, where+": "+string(s))
			continue
		}
		for _, kind := range kinds {
			if s != liveSide {
				into[access{s, kind}] = where
			}
		}
	}
}

// implementations returns the methods that a call of an interface method may reach.
func (p *program) implementations(f *types.Func) []*types.Func {
	in, ok := f.Signature().Recv().Type().Underlying().(*types.Interface)
	if !ok {
		return nil
	}
	var all []*types.Func
	for _, pkg := range p.packages {
		for _, name := range pkg.Scope().Names() {
			named, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || types.IsInterface(named.Type()) || !types.Implements(types.NewPointer(named.Type()), in) {
				continue
			}
			method, _, _ := types.LookupFieldOrMethod(named.Type(), true, f.Pkg(), f.Name())
			if method, ok := method.(*types.Func); ok {
				all = append(all, method.Origin())
			}
		}
	}
	return all
}

// bind returns the arguments that a call passes to a function.
func (w *walk) bind(call *ast.CallExpr, f *types.Func, in *frame) binding {
	b := binding{sides: map[types.Object][]side{}, kinds: map[types.Object][]string{}}
	signature := f.Signature()
	switch fun := function(call).(type) {
	case *ast.Ident:
		b.targs = bindTypes(signature.TypeParams(), w.info.Instances[fun].TypeArgs, in.targs)
	case *ast.SelectorExpr:
		b.targs = bindTypes(signature.TypeParams(), w.info.Instances[fun.Sel].TypeArgs, in.targs)
		if named, ok := deref(subst(w.info.TypeOf(fun.X), in.targs)).(*types.Named); ok && signature.RecvTypeParams().Len() == named.TypeArgs().Len() {
			b.targs = bindTypes(signature.RecvTypeParams(), named.TypeArgs(), in.targs)
		}
	}
	for i := range signature.Params().Len() {
		parameter := signature.Params().At(i)
		if i >= len(call.Args) || signature.Variadic() && i == signature.Params().Len()-1 {
			break
		}
		if isReader(parameter.Type()) {
			b.sides[parameter] = w.sidesOf(call.Args[i], in, 0)
		}
		if isObject(parameter.Type()) {
			b.kinds[parameter] = w.kindsOf(call.Args[i], in, 0)
		}
	}
	return b
}
