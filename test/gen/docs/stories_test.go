package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onClusters lists the directories whose tests run on real API servers.
var onClusters = []string{"test/integration", "test/e2e"}

// unstaged lists the reasons that no test on real clusters names, and why no test can cause them.
var unstaged = map[string]string{}

// TestReasonsInStories checks that tests on real clusters name every reason in REASONS.md.
func TestReasonsInStories(t *testing.T) {
	t.Chdir("../../..")
	conditions, groups, err := reasons()
	if err != nil {
		t.Fatal(err)
	}
	told, err := mentions(onClusters...)
	if err != nil {
		t.Fatal(err)
	}
	var missing, stale []string
	for _, g := range groups {
		for _, e := range g.entries {
			ambiguous := slices.ContainsFunc(conditions, func(c entry) bool { return c.value == e.value })
			named := told.names[e.name] || told.texts[e.value] && !ambiguous
			switch cause, listed := unstaged[e.value]; {
			case !named && !listed:
				missing = append(missing, e.value)
			case named && listed, listed && len(strings.Fields(cause)) < 5:
				stale = append(stale, e.value)
			}
			delete(unstaged, e.value)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no test in %v names these reasons. Write a story that causes each of them: %v", onClusters, missing)
	}
	for reason := range unstaged {
		stale = append(stale, reason)
	}
	if len(stale) > 0 {
		t.Errorf("correct these entries of unstaged: a story names the reason, the reason does not exist, or the explanation is too short: %v", stale)
	}
}

// mentioned contains everything in the code that can be a reason: names contains the identifiers
// from package v1alpha1, and texts contains the values of string literals.
type mentioned struct{ names, texts map[string]bool }

// mentions returns the possible reasons in the Go files below the directories. It ignores comments
// and parts of literals.
func mentions(roots ...string) (mentioned, error) {
	all := mentioned{map[string]bool{}, map[string]bool{}}
	for _, root := range roots {
		if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err //nolint:wrapcheck // it names the file
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if selected(n.X) == "v1alpha1" {
						all.names[n.Sel.Name] = true
					}
				case *ast.BasicLit:
					if text, ok := literal(n); ok {
						all.texts[text] = true
					}
				}
				return true
			})
			return nil
		}); err != nil {
			return all, err //nolint:wrapcheck // as above
		}
	}
	return all, nil
}

// TestMentions checks that only code counts as a mention.
func TestMentions(t *testing.T) {
	for name, tc := range map[string]struct {
		code string
		want mentioned
	}{
		"a constant":           {`var r = v1alpha1.ReasonNameTaken`, mentioned{map[string]bool{"ReasonNameTaken": true}, map[string]bool{}}},
		"another package's":    {`var r = other.ReasonNameTaken`, mentioned{map[string]bool{}, map[string]bool{}}},
		"a literal":            {`var r = "NameTaken"`, mentioned{map[string]bool{}, map[string]bool{"NameTaken": true}}},
		"a part of a literal":  {`var r = "NameTaken: data"`, mentioned{map[string]bool{}, map[string]bool{"NameTaken: data": true}}},
		"a comment":            {`// v1alpha1.ReasonNameTaken is "NameTaken".`, mentioned{map[string]bool{}, map[string]bool{}}},
		"a constant in a call": {`func f() { s.why(ctx, v1alpha1.ReasonNameTaken) }`, mentioned{map[string]bool{"ReasonNameTaken": true}, map[string]bool{}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a_test.go"), []byte("package a\n"+tc.code+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := mentions(dir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(mentioned{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
