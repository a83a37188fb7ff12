package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestProseFitsTerminals checks the width of section titles, and of lines without variable values. It
// also counts the sections.
// The timeline and tables may be wider.
func TestProseFitsTerminals(t *testing.T) {
	const columns = 80
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found, begun := 0, 0
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"section", "title", "line"}, method.Sel.Name) {
				return true
			}
			text := printed(call.Args[0])
			switch method.Sel.Name {
			case "section":
				begun++
				text = fmt.Sprintf("== %d of %d: %s", sections, sections, text)
			case "title":
				text = "== " + text
			}
			if found++; length(text) > columns {
				t.Errorf("a text has %d columns, want %d at most: %s", length(text), columns, text)
			}
			return true
		})
	}
	if begun != sections {
		t.Errorf("found %d sections, and the demo numbers them up to %d", begun, sections)
	}
	if found < 20 {
		t.Errorf("found %d titles and lines, want at least 20", found)
	}
}

// printed returns the text of a literal, or of a concatenation of literals and members' names.
func printed(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			return e.Value
		}
		return text
	case *ast.BinaryExpr:
		return printed(e.X) + printed(e.Y)
	default:
		return strings.Repeat("x", len(pinned))
	}
}
