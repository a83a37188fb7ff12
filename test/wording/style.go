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

// message is a string in the source that people read, or a part of such a string.
type message struct {
	// file is relative to the module.
	file string
	line int
	text string
}

// fewest is the minimum number of spaces in a message. Names and keys have none.
const fewest = 2

// errorsShown lists the folders whose errors users see verbatim: the plugin's commands. The errors
// of controllers go to the log, where keys identify the objects.
var errorsShown = []string{"internal/cli/"}

// messages returns the messages in the Go files below a folder of the module: every string of
// several words, except errors that only appear in the log.
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
	return found, err
}

type collector struct {
	files *token.FileSet
	file  string
	found *[]message
}

func (c *collector) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		return called(n) != "Errorf" || slices.ContainsFunc(errorsShown, func(p string) bool { return strings.HasPrefix(c.file, p) })
	case *ast.BasicLit:
		text, err := strconv.Unquote(n.Value)
		if n.Kind == token.STRING && err == nil && strings.Count(text, " ") >= fewest {
			*c.found = append(*c.found, message{c.file, c.files.Position(n.Pos()).Line, text})
		}
	}
	return true
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

// rule is a rule for every message.
type rule struct {
	breaks *regexp.Regexp
	// instead is the better wording.
	instead string
}

// rules are the rules of the style guide that a program can check: words that read as
// translated, names without quotes, and counts without a correct plural.
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
	{regexp.MustCompile(`\b(says|said|tells|told|speaks|hears)\b`), `"shows", "reports"`},
	{regexp.MustCompile(`\b(is|was|are|were|be) made\b`), `"is created", "is provisioned"`},
	{regexp.MustCompile(`\btaken back\b|\btakes back\b`), `"withdrawn"`},
	{regexp.MustCompile(`\b(stays|goes on) (there|being|to)\b`), `"is kept", "is still"`},
	{regexp.MustCompile(`\bmember's is\b|\b(has|have|had) to have\b|\bis nobody's\b`), `the owner as the subject`},
	{regexp.MustCompile(`\b(any more|all the same|of its own accord|meanwhile)\b`), `"no longer", "anyway", "since"`},
	{regexp.MustCompile(`\bhave (it|them|that|all [a-z ]+) (removed|deleted|put)\b`), `"ask the member's admin to delete it"`},
	{regexp.MustCompile(`\b(member|registration|claim|volume|node|namespace|Secret|Pod|Service|Lease|Deployment|ServiceAccount|ConfigMap|PersistentVolume|StorageClass|ClusterRegistration) %s\b`), `the name in quotes: %q`},
	{regexp.MustCompile(`(^|[^"0-9a-z=])%s/%s`), `the name in quotes: \"%s/%s\"`},
	{regexp.MustCompile(`\b(he|she|him|his|her)\b`), `"they"`},
	{regexp.MustCompile(`%d (Pods|claims|volumes|classes|members|nodes|deletions|conditions|lines|files|objects)\b`), `a true plural: text.Count`},
}

// commands match quoted commands, to which the rules do not apply.
var commands = regexp.MustCompile("`[^`]*`")

// broken returns, for each rule that a message breaks, what to write instead.
func broken(text string) []string { return matches(rules, text) }

// matches returns, for each of the rules that a text breaks, what to write instead.
func matches(rules []rule, text string) []string {
	text = commands.ReplaceAllString(text, "`…`")
	var found []string
	for _, r := range rules {
		if word := r.breaks.FindString(text); word != "" {
			found = append(found, fmt.Sprintf("%q: write %s", word, r.instead))
		}
	}
	return found
}
