package source

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// access identifies what a controller reads or watches: a kind in a cache.
type access struct {
	side side
	kind string
}

func (a access) String() string { return string(a.side) + " " + a.kind }

// controllerAccesses lists a controller's reads and watches, with their positions in the source.
type controllerAccesses struct {
	// name is the package and the type of the controller's reconciler.
	name           string
	reads, watches map[access]string
	// unknown are reads and watches whose reader or kind could not be determined.
	unknown []string
}

// unwatched returns what the controller reads but does not watch, in order.
func (c *controllerAccesses) unwatched() []access {
	var all []access
	for a := range c.reads {
		if _, watched := c.watches[a]; !watched {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b access) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// controllers returns all controllers that the packages below internal/controller register.
func (p *program) controllers() ([]*controllerAccesses, error) {
	var all []*controllerAccesses
	for f, decl := range p.functions {
		if !strings.HasPrefix(f.Pkg().Path(), module+"internal/controller/") {
			continue
		}
		var found error
		ast.Inspect(decl.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			reconciler := p.registered(call)
			if reconciler == nil {
				return true
			}
			for _, targs := range p.instances(f) {
				c, err := p.accessesOf(f, reconciler, targs)
				if err != nil {
					found = err
					return false
				}
				all = append(all, c)
			}
			return true
		})
		if found != nil {
			return nil, found
		}
	}
	slices.SortFunc(all, func(a, b *controllerAccesses) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// registered returns the reconciler that a call registers, or nil.
func (p *program) registered(call *ast.CallExpr) ast.Expr {
	f := p.declaredCallee(call)
	if f == nil {
		return nil
	}
	var reconciler ast.Expr
	switch f.Name() {
	case "AddController":
		if f.Pkg().Path() != module+"internal/member" {
			return nil
		}
		reconciler = call.Args[2]
	case "Complete":
		if f.Pkg().Path() != "sigs.k8s.io/controller-runtime/pkg/builder" {
			return nil
		}
		reconciler = call.Args[0]
	default:
		return nil
	}
	if wrapper, ok := reconciler.(*ast.CallExpr); ok {
		if f := p.declaredCallee(wrapper); f != nil && f.FullName() == module+"internal/guarded.WrapReconciler" {
			return wrapper.Args[0]
		}
	}
	return reconciler
}

// instances returns all sets of type arguments that a function is called with, or one empty set if
// the function is not generic.
func (p *program) instances(f *types.Func) []map[*types.TypeParam]types.Type {
	parameters := f.Signature().TypeParams()
	if parameters.Len() == 0 {
		return []map[*types.TypeParam]types.Type{{}}
	}
	var all []map[*types.TypeParam]types.Type
	known := map[string]bool{}
	for ident, instance := range p.info.Instances {
		if p.info.Uses[ident] != types.Object(f) {
			continue
		}
		targs := bindTypes(parameters, instance.TypeArgs, nil)
		if name := describe(targs); !known[name] {
			known[name] = true
			all = append(all, targs)
		}
	}
	return all
}

// accessesOf determines what a setup function watches, and what its reconciler reads.
func (p *program) accessesOf(setup *types.Func, reconciler ast.Expr, targs map[*types.TypeParam]types.Type) (*controllerAccesses, error) {
	t := subst(p.info.TypeOf(reconciler), targs)
	named, ok := deref(t).(*types.Named)
	if !ok {
		return nil, fmt.Errorf("%s: the reconciler is a %s", p.fset.Position(reconciler.Pos()), t)
	}
	method, _, _ := types.LookupFieldOrMethod(t, true, named.Obj().Pkg(), "Reconcile")
	reconcile, ok := method.(*types.Func)
	if !ok {
		return nil, fmt.Errorf("%s lacks method Reconcile", named)
	}
	c := &controllerAccesses{name: named.Obj().Pkg().Name() + "." + named.Obj().Name()}
	if described := describe(targs); described != "" {
		c.name += "[" + described + "]"
	}
	w := newWalk(p)
	w.follow(setup, binding{targs: targs})
	c.watches, c.unknown = w.watches, w.unknownWatches
	w = newWalk(p)
	w.follow(reconcile.Origin(), binding{targs: bindTypes(reconcile.Origin().Signature().RecvTypeParams(), named.TypeArgs(), nil)})
	c.reads = w.reads
	c.unknown = append(c.unknown, w.unknownReads...)
	return c, nil
}
