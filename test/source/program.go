package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// root is the repository's root, relative to this package.
	root = "../.."
	// module is the prefix of the import paths in this module.
	module = "github.com/xylem-io/xylem/"
)

// program is the source of some packages, with type information.
type program struct {
	fset *token.FileSet
	// packages are in the order of their imports, and files in the order of the packages.
	packages []*types.Package
	files    []sourceFile
	// functions maps functions with bodies to their declarations. info covers all packages.
	functions map[*types.Func]*ast.FuncDecl
	info      *types.Info
	imports   imports
}

// sourceFile is a parsed Go file. name is its path in the repository. dir is its package's import path without the module.
type sourceFile struct {
	*ast.File
	name, dir string
}

// listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, IgnoredGoFiles []string
}

// load type-checks the module's packages that match the patterns for go list, and the module's
// packages that they import. For other modules' packages, it uses the compiler's export data.
func load(ctx context.Context, patterns ...string) (*program, error) {
	all, err := list(ctx, patterns)
	if err != nil {
		return nil, err
	}
	p := &program{
		fset: token.NewFileSet(), functions: map[*types.Func]*ast.FuncDecl{},
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{}, Implicits: map[ast.Node]types.Object{},
		},
	}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	p.imports = imports{ours: map[string]*types.Package{}, theirs: importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(exports[path])
	})}
	for _, l := range all { // dependencies come first
		if !strings.HasPrefix(l.ImportPath, module) {
			continue
		}
		if err := p.check(l); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// with returns the program and the package in a directory, which it type-checks as a package below
// internal/controller. Both programs share the type information, in which only the new package's
// nodes are added.
func (p *program) with(dir string) (*program, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	extended := *p
	extended.packages, extended.files, extended.functions = slices.Clip(p.packages), slices.Clip(p.files), maps.Clone(p.functions)
	return &extended, extended.check(listed{ImportPath: module + "internal/controller/" + filepath.Base(dir), GoFiles: names})
}

func list(ctx context.Context, patterns []string) ([]listed, error) {
	arguments := append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,IgnoredGoFiles"}, patterns...)
	command := exec.CommandContext(ctx, "go", arguments...) //nolint:gosec // patterns of tests
	command.Dir = root
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &complaints)
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the output of go list: %w", err)
		}
		for i, name := range l.GoFiles {
			l.GoFiles[i] = filepath.Join(l.Dir, name)
		}
		all = append(all, l)
	}
}

// check parses and type-checks a package. It refuses files for other platforms, because the proofs
// would omit them.
func (p *program) check(l listed) error {
	for _, ignored := range l.IgnoredGoFiles {
		if !strings.HasSuffix(ignored, "_test.go") {
			return fmt.Errorf("the proofs cannot read %s in %s: its build constraints exclude it", ignored, l.ImportPath)
		}
	}
	dir := strings.TrimPrefix(l.ImportPath, module)
	var files []*ast.File
	for _, path := range l.GoFiles {
		file, err := parser.ParseFile(p.fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse %s: %w", path, err)
		}
		files = append(files, file)
		p.files = append(p.files, sourceFile{file, dir + "/" + filepath.Base(path), dir})
	}
	config := types.Config{Importer: p.imports}
	pkg, err := config.Check(l.ImportPath, p.fset, files, p.info)
	if err != nil {
		return fmt.Errorf("type-check %s: %w", l.ImportPath, err)
	}
	p.imports.ours[l.ImportPath] = pkg
	p.packages = append(p.packages, pkg)
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				if obj, ok := p.info.Defs[f.Name].(*types.Func); ok {
					p.functions[obj] = f
				}
			}
		}
	}
	return nil
}

// filesBelow returns the files of the packages in a directory and below it.
func (p *program) filesBelow(dir string) []sourceFile {
	var found []sourceFile
	for _, file := range p.files {
		if strings.HasPrefix(file.dir+"/", dir+"/") {
			found = append(found, file)
		}
	}
	return found
}

// functionsIn returns the functions that the package in a directory declares, by name.
func (p *program) functionsIn(dir string) map[string]*ast.FuncDecl {
	found := map[string]*ast.FuncDecl{}
	for _, file := range p.files {
		if file.dir != dir {
			continue
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				found[function.Name.Name] = function
			}
		}
	}
	return found
}

// callee returns the function that a call names, or nil for function values and conversions. For an
// instance of a generic type, it is the instance's method.
func (p *program) callee(call *ast.CallExpr) *types.Func {
	var name *ast.Ident
	switch fun := function(call).(type) {
	case *ast.Ident:
		name = fun
	case *ast.SelectorExpr:
		name = fun.Sel
	}
	f, _ := p.info.Uses[name].(*types.Func)
	return f
}

// declaredCallee returns the declaration of the function that a call names. It is nil also for the
// methods of predeclared types, which have no package.
func (p *program) declaredCallee(call *ast.CallExpr) *types.Func {
	f := p.callee(call)
	if f == nil || f.Pkg() == nil {
		return nil
	}
	return f.Origin()
}

// function returns the called expression, without parentheses and type arguments.
func function(call *ast.CallExpr) ast.Expr {
	fun := ast.Unparen(call.Fun)
	switch index := fun.(type) {
	case *ast.IndexExpr:
		fun = index.X
	case *ast.IndexListExpr:
		fun = index.X
	}
	return fun
}

// imports finds packages that load has type-checked or that are compiled.
type imports struct {
	ours   map[string]*types.Package
	theirs types.Importer
}

// Import implements types.Importer.
func (i imports) Import(path string) (*types.Package, error) {
	if pkg := i.ours[path]; pkg != nil {
		return pkg, nil
	}
	return i.theirs.Import(path)
}
