package source

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The header and the minimum size of the table in internal/README.md, "To change X, edit Y".
const (
	changeTableHeader = "| to change | edit |\n|---|---|\n"
	leastChanges      = 20
)

var (
	// quoted is a path or an identifier.
	quoted = regexp.MustCompile("(: )?`([^`]+)`")
	// rooted is a path from the repository's root.
	rooted = regexp.MustCompile(`^(api|charts|cmd|config|internal|test)/[\w./-]+$`)
)

// TestChangeTable checks that each path in the table exists, that a path followed by ": `name`"
// declares that name, and that each row names a path.
func TestChangeTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "internal", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), changeTableHeader)
	if !ok {
		t.Fatalf("README.md has no table %q", changeTableHeader)
	}
	rows := 0
	for row := range strings.Lines(rest) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		if len(cells) != 2 {
			break
		}
		rows++
		for _, problem := range changeProblems(cells[1]) {
			t.Errorf("to change %q: %s", cells[0], problem)
		}
	}
	if rows < leastChanges {
		t.Errorf("the table has %d changes, want at least %d", rows, leastChanges)
	}
}

// changeProblems describes what is wrong with a row's paths and names.
func changeProblems(cell string) []string {
	var wrong []string
	path := ""
	for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
		follows, text := match[1] != "", match[2]
		switch {
		case rooted.MatchString(text):
			path = filepath.Join(root, text)
			if _, err := os.Stat(path); err != nil {
				wrong = append(wrong, text+" does not exist")
			}
		case follows && path != "":
			if !declares(path, text) {
				wrong = append(wrong, path+" does not declare "+text)
			}
		}
	}
	if path == "" {
		wrong = append(wrong, "the row names no path")
	}
	return wrong
}

// declares reports whether a Go file declares a function, method, type, variable or constant.
func declares(path, name string) bool {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(file.Decls, func(decl ast.Decl) bool {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			return d.Name.Name == name
		case *ast.GenDecl:
			return slices.ContainsFunc(d.Specs, func(spec ast.Spec) bool { return specifies(spec, name) })
		default:
			return false
		}
	})
}

func specifies(spec ast.Spec, name string) bool {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return s.Name.Name == name
	case *ast.ValueSpec:
		return slices.ContainsFunc(s.Names, func(id *ast.Ident) bool { return id.Name == name })
	default:
		return false
	}
}

// TestChangeProblems checks that changeProblems finds mistakes.
func TestChangeProblems(t *testing.T) {
	tests := map[string]struct {
		cell string
		want int
	}{
		"all paths and names exist": {"`test/source/change_table_test.go`: `declares`, `changeTableHeader`; `internal`", 0},
		"a method":                  {"`internal/guarded/leaf.go`: `SetVolumePolicyDelete`", 0},
		"a path does not exist":     {"`internal/nowhere.go`", 1},
		"a name is not declared":    {"`test/source/change_table_test.go`: `nothing`", 1},
		"the row names no path":     {"something", 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := changeProblems(tc.cell); len(got) != tc.want {
				t.Errorf("problems of %s: %q, want %d", tc.cell, got, tc.want)
			}
		})
	}
}
