package wording

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// message is a format string of the source that becomes text for users.
type message struct {
	// file relative to the module, and line.
	file string
	line int
	text string
}

// writers are the functions whose arguments are messages, by name, with the index of the
// first argument that is one.
var writers = map[string]int{"Eventf": 5, "refuse": 1, "say": 1, "Errorf": 0}

// errorsShown are the folders whose errors a user reads as they are: the plugin's commands.
// Errors of controllers go to the log.
var errorsShown = []string{"internal/cli/"}

// messages collects the messages in the Go files below a folder of the module: formats of
// events and of refusals, values of fields named Message, and, of commands, errors.
func messages(root, folder string) ([]message, error) {
	var found []message
	files := token.NewFileSet()
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse %s: %w", path, err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return fmt.Errorf("find %s in the module: %w", path, err)
		}
		c := &collector{files: files, file: filepath.ToSlash(name), found: &found}
		ast.Inspect(file, c.look)
		return nil
	})
	slices.SortFunc(found, func(a, b message) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line)) })
	return slices.Compact(found), err
}

type collector struct {
	files *token.FileSet
	file  string
	found *[]message
}

func (c *collector) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		name := called(n)
		first, writes := writers[name]
		if !writes || name == "Errorf" && !slices.ContainsFunc(errorsShown, func(p string) bool { return strings.HasPrefix(c.file, p) }) {
			return true
		}
		if len(n.Args) > first {
			c.literals(n.Args[first])
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Message" {
			c.literals(n.Value)
		}
	}
	return true
}

// literals are the strings that a message is put together from.
func (c *collector) literals(from ast.Expr) {
	ast.Inspect(from, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && called(call) == "Sprintf" && len(call.Args) > 0 {
			c.literals(call.Args[0])
			return false
		}
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") {
			*c.found = append(*c.found, message{c.file, c.files.Position(literal.Pos()).Line, text})
		}
		return true
	})
}

func called(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		return fun.Sel.Name
	case *ast.Ident:
		return fun.Name
	}
	return ""
}

// rule is one that every message has to keep.
type rule struct {
	breaks *regexp.Regexp
	// instead says what to write.
	instead string
}

// rules are those of the style guide that a program can check: words that read as
// translated, names that are not in quotes, and counts without a true plural.
var rules = []rule{
	{regexp.MustCompile(`\banew\b`), `"again", or "re-creates"`},
	{regexp.MustCompile(`\b(let|lets|letting) go of\b|\bis let go\b`), `"releases", or "abandons"`},
	{regexp.MustCompile(`\bse(e|es|eing) to\b`), `"check"`},
	{regexp.MustCompile(`\bholds? (it|something|anything|nothing)?\s*against\b|\bis held against\b`), `"rejects", or "is compared with"`},
	{regexp.MustCompile(`\bstands? (for|at)\b|\bstood (for|at)\b`), `"represents", or "has policy"`},
	{regexp.MustCompile(`\bwoken\b|\bwakes?\b`), `"enqueues"`},
	{regexp.MustCompile(`\blanded\b|\blands\b`), `"was bound to the node"`},
	{regexp.MustCompile(`\broom\b`), `"capacity"`},
	{regexp.MustCompile(`\btake it that\b|\bwhosoever\b|\bwhoever\b`), `"assume", or "the user"`},
	{regexp.MustCompile(`\b(member|registration|claim|volume|node|namespace|Secret|Pod|Service|StorageClass|ClusterRegistration) %s\b`), `the name in quotes: %q`},
	{regexp.MustCompile(`%d (Pods|claims|volumes|classes|members|nodes|deletions|conditions|lines|files|objects)\b`), `a true plural: text.Count`},
}

// broken are the rules that a message breaks: what to write instead.
func broken(text string) []string {
	var found []string
	for _, r := range rules {
		if word := r.breaks.FindString(text); word != "" {
			found = append(found, fmt.Sprintf("%q: write %s", word, r.instead))
		}
	}
	return found
}
