package source

import (
	"fmt"
	"go/ast"
	"go/token"
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

// fewestSpaces is the minimum number of spaces in a message. Names and keys have none.
const fewestSpaces = 2

// errorsShown lists the folders whose errors users see verbatim: the plugin's commands. The errors
// of controllers go to the log, where keys identify the objects.
var errorsShown = []string{"internal/cli/"}

// messagesIn returns the messages in a file: every string of several words, except errors that only
// appear in the log.
func messagesIn(fset *token.FileSet, file sourceFile) []message {
	var found []message
	shown := slices.ContainsFunc(errorsShown, func(folder string) bool { return strings.HasPrefix(file.name, folder) })
	ast.Inspect(file.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return shown || nameOfCalled(n) != "Errorf"
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind == token.STRING && err == nil && strings.Count(text, " ") >= fewestSpaces {
				found = append(found, message{file.name, fset.Position(n.Pos()).Line, text})
			}
		}
		return true
	})
	return found
}

func nameOfCalled(call *ast.CallExpr) string {
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

// styleRules are the rules of the style guide that a program can check: words that read as
// translated, names without quotes, and counts without a correct plural.
var styleRules = []rule{
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

// quotedCommands match quoted commands, to which the rules do not apply.
var quotedCommands = regexp.MustCompile("`[^`]*`")

// brokenRules returns, for each of the rules that a text breaks, what to write instead.
func brokenRules(rules []rule, text string) []string {
	text = quotedCommands.ReplaceAllString(text, "`…`")
	var found []string
	for _, r := range rules {
		if word := r.breaks.FindString(text); word != "" {
			found = append(found, fmt.Sprintf("%q: write %s", word, r.instead))
		}
	}
	return found
}
