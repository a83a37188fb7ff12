// Package gosource type-checks the module's own source for static tests.
package gosource

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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is the prefix of the import paths in this module.
const Module = "github.com/xylem-io/xylem/"

// Program is the source of some packages, with type information.
type Program struct {
	Files    *token.FileSet
	Packages []*types.Package
	// Functions maps functions with bodies to their declarations. Info covers all packages.
	Functions map[*types.Func]*ast.FuncDecl
	Info      *types.Info
}

// listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// Load type-checks the module's packages that match the patterns for go list, and the module's
// packages that they import. It also type-checks the extra directories, as packages below
// internal/controller. For other modules' packages, it uses the compiler's export data.
func Load(ctx context.Context, root string, patterns []string, extra ...string) (*Program, error) {
	all, err := list(ctx, root, patterns)
	if err != nil {
		return nil, err
	}
	for _, dir := range extra {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, err)
		}
		all = append(all, listed{ImportPath: Module + "internal/controller/" + filepath.Base(dir), GoFiles: files})
	}
	p := &Program{
		Files: token.NewFileSet(), Functions: map[*types.Func]*ast.FuncDecl{},
		Info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{}, Implicits: map[ast.Node]types.Object{},
		},
	}
	checked := imports{ours: map[string]*types.Package{}}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	checked.theirs = importer.ForCompiler(p.Files, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(exports[path])
	})
	for _, l := range all { // dependencies come first
		if !strings.HasPrefix(l.ImportPath, Module) {
			continue
		}
		if err := p.check(l, checked); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func list(ctx context.Context, root string, patterns []string) ([]listed, error) {
	arguments := append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles"}, patterns...)
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
		for i, file := range l.GoFiles {
			l.GoFiles[i] = filepath.Join(l.Dir, file)
		}
		all = append(all, l)
	}
}

// check parses and type-checks a package.
func (p *Program) check(l listed, known imports) error {
	var files []*ast.File
	for _, path := range l.GoFiles {
		file, err := parser.ParseFile(p.Files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse %s: %w", path, err)
		}
		files = append(files, file)
	}
	config := types.Config{Importer: known}
	pkg, err := config.Check(l.ImportPath, p.Files, files, p.Info)
	if err != nil {
		return fmt.Errorf("type-check %s: %w", l.ImportPath, err)
	}
	known.ours[l.ImportPath] = pkg
	p.Packages = append(p.Packages, pkg)
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				if obj, ok := p.Info.Defs[f.Name].(*types.Func); ok {
					p.Functions[obj] = f
				}
			}
		}
	}
	return nil
}

// imports finds packages that Load has type-checked or that are compiled.
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
