package source

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"regexp/syntax"
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
	breaks pattern
	// instead is the better wording.
	instead string
}

// styleRules are the rules of the style guide that a program can check: words that read as
// translated, names without quotes, and counts without a correct plural.
var styleRules = []rule{
	{phrase(`\banew\b`), `"again", or "re-creates"`},
	{phrase(`\b(let|lets|letting) go of\b|\bis let go\b`), `"releases", or "abandons"`},
	{phrase(`\bse(e|es|eing) to\b`), `"check"`},
	{phrase(`\bholds? (it|something|anything|nothing)?\s*against\b|\bis held against\b`), `"rejects", or "is compared with"`},
	{phrase(`\bstands? (for|at)\b|\bstood (for|at)\b`), `"represents", or "has policy"`},
	{phrase(`\bwoken\b|\bwakes?\b`), `"enqueues"`},
	{phrase(`\blanded\b|\blands\b`), `"was bound to the node"`},
	{phrase(`\broom\b`), `"capacity"`},
	{phrase(`\btake it that\b|\bwhosoever\b|\bwhoever\b`), `"assume", or "the user"`},
	{phrase(`\b(says|said|tells|told|speaks|hears)\b`), `"shows", "reports"`},
	{phrase(`\b(is|was|are|were|be) made\b`), `"is created", "is provisioned"`},
	{phrase(`\btaken back\b|\btakes back\b`), `"withdrawn"`},
	{phrase(`\b(stays|goes on) (there|being|to)\b`), `"is kept", "is still"`},
	{phrase(`\bmember's is\b|\b(has|have|had) to have\b|\bis nobody's\b`), `the owner as the subject`},
	{phrase(`\b(any more|all the same|of its own accord|meanwhile)\b`), `"no longer", "anyway", "since"`},
	{phrase(`\bhave (it|them|that|all [a-z ]+) (removed|deleted|put)\b`), `"ask the member's admin to delete it"`},
	{phrase(`\b(member|registration|claim|volume|node|namespace|Secret|Pod|Service|Lease|Deployment|ServiceAccount|ConfigMap|PersistentVolume|StorageClass|ClusterRegistration) %s\b`), `the name in quotes: %q`},
	{phrase(`(^|[^"0-9a-z=])%s/%s`), `the name in quotes: \"%s/%s\"`},
	{phrase(`\b(he|she|him|his|her)\b`), `"they"`},
	{phrase(`%d (Pods|claims|volumes|classes|members|nodes|deletions|conditions|lines|files|objects)\b`), `a true plural: text.Count`},
}

// quotedCommands match quoted commands, to which the rules do not apply.
var quotedCommands = regexp.MustCompile("`[^`]*`")

// brokenRules returns, for each of the rules that a text breaks, what to write instead.
func brokenRules(rules []rule, text string) []string {
	text = quotedCommands.ReplaceAllString(text, "`…`")
	var found []string
	for _, r := range rules {
		if word := r.breaks.find(text); word != "" {
			found = append(found, fmt.Sprintf("%q: write %s", word, r.instead))
		}
	}
	return found
}

// pattern is a regular expression. Every match contains one of the literals. Without a search for them,
// the proofs would spend most of their time in regular expressions that do not match.
type pattern struct {
	*regexp.Regexp
	literals []string
}

// phrase compiles a pattern.
func phrase(expression string) pattern {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return pattern{regexp.MustCompile(expression), literalsOf(parsed)}
}

// find returns the first match in a text, or "".
func (p pattern) find(text string) string {
	if len(p.literals) > 0 && !slices.ContainsFunc(p.literals, func(literal string) bool { return strings.Contains(text, literal) }) {
		return ""
	}
	return p.FindString(text)
}

// literalsOf returns texts of which every match of an expression contains at least one. It returns nil
// if there are no such texts.
func literalsOf(expression *syntax.Regexp) []string {
	switch {
	case expression.Op == syntax.OpLiteral && expression.Flags&syntax.FoldCase == 0:
		return []string{string(expression.Rune)}
	case expression.Op == syntax.OpCapture:
		return literalsOf(expression.Sub[0])
	case expression.Op == syntax.OpConcat: // the part whose literals are the longest
		var best []string
		for _, part := range expression.Sub {
			if literals := literalsOf(part); shortest(literals) > shortest(best) {
				best = literals
			}
		}
		return best
	case expression.Op == syntax.OpAlternate:
		var all []string
		for _, alternative := range expression.Sub {
			literals := literalsOf(alternative)
			if literals == nil {
				return nil
			}
			all = append(all, literals...)
		}
		return all
	}
	return nil
}

// shortest returns the length of the shortest text, or 0.
func shortest(texts []string) int {
	length := 0
	for i, text := range texts {
		if i == 0 || len(text) < length {
			length = len(text)
		}
	}
	return length
}
