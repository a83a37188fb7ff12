package source

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// idioms are phrases that read as translated, with the better wording. They apply to everything
// that people read: comments, strings, pages and manifests. A rule must not match good text.
var idioms = []rule{
	{phrase(`\bby hand\b`), `"manually"`},
	{phrase(`\bas (it|they) should be\b`), `"correct", or the condition that holds`},
	{phrase(`\b(let|lets|letting) go of\b|\b(is|was) let (go|be)\b`), `"releases", "abandons", or "is not changed"`},
	{phrase(`\b(made|makes|writes|placed|created?) anew\b`), `"re-created", or "again"`},
	{phrase(`\bfor ever\b`), `"forever"`},
	{phrase(`\b(is|are) nobody's\b`), `"has no owner"`},
	{phrase(`\bunder way\b`), `"in progress"`},
	{phrase(`\ball the same[.,;:]|\ball the same$`), `"still", or "anyway"`},
	{phrase(`\btak(en|es) back\b`), `"withdrawn", "removed", or "undone"`},
	{phrase(`\bput to (Delete|Retain)\b`), `"set to Delete"`},
	{phrase(`\bis? held against\b|\b(is|are) held to\b`), `"is compared with", or "is limited to"`},
	{phrase(`\b(is|are|was|were) told\b`), `"is notified", or "reports"`},
	{phrase(`\b(is|are|it|them) taken off\b|\btakes? (it|them) off\b`), `"is removed"`},
	{phrase(`\b(is|are) to be (created|deleted|destroyed|kept|made|had|restored|retained|released)\b`), `"will be", or "must be"`},
	{phrase(`\bwho(so)?ever\b`), `"the user"`},
	{phrase(`\blooked at (again|after|by)\b`), `"checked", or "reconciled"`},
	{phrase(`\b(disk|volume|data|snapshot)s? goe?s? with (its|the|their)\b`), `"is deleted with"`},
	{phrase(`\bis no (kind|name|object|literal|list|number|string|mode|certificate|flag|terminal|image|version)\b`), `"is not a"`},
	{phrase(`\bany more[.,;:]|\bany more$|\bany more (because|and|or)\b`), `"no longer"`},
	{phrase(`\b(an?|of|the) [a-z ]+ that (is|are) none\b`), `"an invalid"`},
	{phrase(`\blately\b`), `"recently"`},
	{phrase(`\bin whichever\b|, whichever (the|its|their|is|member|replica)\b`), `"regardless of"`},
	{phrase(`\b(condition|message|status|registration|claim|annotation|comment|class)s? says? (so|why|what|that|which|for)\b`), `"shows", or "reports"`},
	{phrase(`\bwithout end\b`), `"endless"`},
	{phrase(`\b(is|are|was|were) woken\b`), `"is enqueued"`},
	{phrase(`\b(object|claim|volume|Pod|name)s? in the way\b`), `"conflicting"`},
	{phrase(`\b(comes?|came) to rest\b`), `"settles"`},
	{phrase(`\b(the|its|their) data (stay|(are|were) (kept|lost|deleted|there|being))\b`), `"data is", "data stays"`},
	{phrase(`\broot (lives|is living)\b|\bclaim lives\b`), `"exists"`},
	{phrase(`\bstrangers?'s?\b`), `"foreign"`},
	{phrase(`^the same,`), `what the case is`},
	{phrase(`\bexists already\b`), `"already exists"`},
	{phrase(`\b(lost|gone|away) for good\b`), `"permanently"`},
	{phrase(`\bours to (write|change|delete)\b`), `"Xylem may"`},
	{phrase(`\b(has|have) nothing of\b`), `"has no objects for"`},
	{phrase(`\b(placed|in) nowhere\b`), `"not placed", "in no member"`},
	{phrase(`\blook-ups?\b`), `"lookup"`},
	{phrase(`, also (if|for)\b`), `"even if", "including for"`},
	{phrase(`\brestored from before\b`), `"restored to a state before"`},
	{phrase(`\bunless given\b`), `"if not set"`},
	{phrase(`\b(does|did|do) not answer\b`), `"does not respond"`},
	{phrase(`\bis no (valid|virtual|evidence|label|identity|API)\b`), `"is not a"`},
	{phrase(`\bin vain\b`), `"without effect"`},
}

// notProse contains the paths in which the rules about idioms are not checked, such as these rules
// themselves and a nested module.
var notProse = []string{"test/source/idioms.go", "test/source/idioms_test.go", "test/source/style.go", "test/source/style_test.go", "test/kube", "bin", "dist", ".git"}

// prose returns what people read below a module: the comments and strings in Go files, the
// paragraphs of Markdown pages outside of code blocks, and the comments of manifests and of the
// Makefile.
func prose(root string) ([]message, error) {
	var found []message
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return fmt.Errorf("find %s in the module: %w", path, err)
		}
		name = filepath.ToSlash(name)
		switch skip := slices.Contains(notProse, name); {
		case skip && entry.IsDir():
			return filepath.SkipDir
		case skip, entry.IsDir():
			return nil
		}
		var read func(string, string) ([]message, error)
		switch ext := filepath.Ext(name); {
		case ext == ".go" && !strings.HasPrefix(filepath.Base(name), "zz_generated"):
			read = ofGo
		case ext == ".md":
			read = ofPage
		case ext == ".yaml", filepath.Base(name) == "Makefile":
			read = ofComments
		default:
			return nil
		}
		messages, err := read(path, name)
		found = append(found, messages...)
		return err
	})
	return found, err
}

// ofGo returns the comments of a Go file, each group as one line, and its strings of several
// words.
func ofGo(path, name string) ([]message, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	var found []message
	for _, group := range file.Comments {
		found = append(found, message{name, files.Position(group.Pos()).Line, oneLine(group.Text())})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if n, ok := n.(*ast.BasicLit); ok && n.Kind == token.STRING {
			if text, err := strconv.Unquote(n.Value); err == nil && strings.Count(text, " ") >= fewestSpaces {
				found = append(found, message{name, files.Position(n.Pos()).Line, oneLine(text)})
			}
		}
		return true
	})
	return found, nil
}

// ofPage returns the paragraphs of a Markdown page, without its code blocks.
func ofPage(path, name string) ([]message, error) {
	fenced := false
	return paragraphs(path, name, func(line string) string {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			return ""
		}
		if fenced || strings.HasPrefix(line, "    ") {
			return ""
		}
		return line
	})
}

// comment matches a line, or the end of a line, with a comment.
var comment = regexp.MustCompile(`(?:^|\s)##?\s(.*)`)

// ofComments returns the comments of a file whose comments begin with #.
func ofComments(path, name string) ([]message, error) {
	return paragraphs(path, name, func(line string) string {
		if match := comment.FindStringSubmatch(line); match != nil {
			return match[1]
		}
		return ""
	})
}

// paragraphs joins adjacent lines for which part returns text.
func paragraphs(path, name string, part func(string) string) ([]message, error) {
	content, err := os.ReadFile(path) //nolint:gosec // A file of the module.
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var found []message
	var current []string
	end := func(line int) {
		if len(current) > 0 {
			found = append(found, message{name, line - len(current), oneLine(strings.Join(current, " "))})
		}
		current = nil
	}
	lines := strings.Split(string(content), "\n")
	for i, line := range lines {
		if text := strings.TrimSpace(part(line)); text != "" {
			current = append(current, text)
			continue
		}
		end(i + 1)
	}
	end(len(lines) + 1)
	return found, nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
