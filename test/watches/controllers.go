package watches

import (
	"context"
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/xylem-io/xylem/test/gosource"
)

// program is the type-checked source below internal/.
type program struct{ *gosource.Program }

func load(ctx context.Context, root string, extra ...string) (*program, error) {
	p, err := gosource.Load(ctx, root, []string{"./internal/..."}, extra...)
	return &program{p}, err
}

// access identifies what a controller reads or watches: a kind in a cache.
type access struct {
	side side
	kind string
}

func (a access) String() string { return string(a.side) + " " + a.kind }

// controller lists a controller's reads and watches, with their positions in the source.
type controller struct {
	// name is the package and the type of the controller's reconciler.
	name           string
	reads, watches map[access]string
	// unknown are reads and watches whose reader or kind could not be determined.
	unknown []string
}

// unwatched returns what the controller reads but does not watch, in order.
func (c *controller) unwatched() []access {
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
func (p *program) controllers() ([]*controller, error) {
	var all []*controller
	for f, decl := range p.Functions {
		if !strings.HasPrefix(f.Pkg().Path(), gosource.Module+"internal/controller/") {
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
				c, err := p.controller(f, reconciler, targs)
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
	slices.SortFunc(all, func(a, b *controller) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// registered returns the reconciler that a call registers, or nil.
func (p *program) registered(call *ast.CallExpr) ast.Expr {
	f := p.callee(call)
	if f == nil {
		return nil
	}
	var reconciler ast.Expr
	switch f.Name() {
	case "Controller":
		if f.Pkg().Path() != gosource.Module+"internal/member" {
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
		if f := p.callee(wrapper); f != nil && f.FullName() == gosource.Module+"internal/guarded/settling.Reconciler" {
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
	for ident, instance := range p.Info.Instances {
		if p.Info.Uses[ident] != types.Object(f) {
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

// controller determines what a setup function watches, and what its reconciler reads.
func (p *program) controller(setup *types.Func, reconciler ast.Expr, targs map[*types.TypeParam]types.Type) (*controller, error) {
	t := subst(p.Info.TypeOf(reconciler), targs)
	named, ok := deref(t).(*types.Named)
	if !ok {
		return nil, fmt.Errorf("%s: the reconciler is a %s", p.Files.Position(reconciler.Pos()), t)
	}
	method, _, _ := types.LookupFieldOrMethod(t, true, named.Obj().Pkg(), "Reconcile")
	reconcile, ok := method.(*types.Func)
	if !ok {
		return nil, fmt.Errorf("%s lacks method Reconcile", named)
	}
	c := &controller{name: named.Obj().Pkg().Name() + "." + named.Obj().Name()}
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
