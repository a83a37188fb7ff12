package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// sources parses the Go files below a directory, except tests, in order.
func sources(root string) (*token.FileSet, []*ast.File, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse %s: %w", path, err)
		}
		files = append(files, file)
		return nil
	})
	return fset, files, err
}

// literal returns a string literal's value, or false for other expressions.
func literal(e ast.Expr) (string, bool) {
	basic, ok := e.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(basic.Value)
	return value, err == nil
}

// selected returns the name of an identifier, or the selected name of a selector.
func selected(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return selected(e.X)
	}
	return ""
}

// cell formats a text for a cell in a Markdown table, on one line.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	text = strings.NewReplacer("|", `\|`, "<", `\<`).Replace(text)
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// strays returns an error if the code uses reasons that are not constants in api/v1alpha1. It finds
// literals that are used as the reason of an event or a condition, and constants in other packages
// that are named like reasons.
func strays(root string) error {
	fset, files, err := sources(root)
	if err != nil {
		return err
	}
	var found []string
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if stray(n) {
				found = append(found, fset.Position(n.Pos()).String())
			}
			return true
		})
	}
	if len(found) > 0 {
		slices.Sort(found)
		return fmt.Errorf("these reasons are not constants in api/v1alpha1, so REASONS.md lacks them:\n\t%s", strings.Join(found, "\n\t"))
	}
	return nil
}

// reasonArguments maps functions' names to the index of the argument that is the reason.
var reasonArguments = map[string]int{"Eventf": 3, "Refuse": 0, "refuse": 0, "PodCondition": 3, "FailedPodStatus": 1, "ClaimStatement": 3}

func stray(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		i, takes := reasonArguments[selected(n.Fun)]
		return takes && i < len(n.Args) && isLiteral(n.Args[i])
	case *ast.KeyValueExpr:
		return selected(n.Key) == "Reason" && isLiteral(n.Value)
	case *ast.ValueSpec:
		return slices.ContainsFunc(n.Names, func(name *ast.Ident) bool { return strings.HasPrefix(strings.ToLower(name.Name), "reason") }) &&
			slices.ContainsFunc(n.Values, isLiteral)
	}
	return false
}

func isLiteral(e ast.Expr) bool {
	_, is := literal(e)
	return is
}
