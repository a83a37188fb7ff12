package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// toDo is where, in a reason's comment, what it says ends.
const toDo = "To do:"

// constant is a reason as comments name it.
var constant = regexp.MustCompile(`\bReason([A-Z]\w*)`)

// contract is the package whose comments are the page.
const contract = "api/v1alpha1"

// group is a block of constants with what its comment says.
type group struct {
	text    string
	entries []entry
}

// entry is a constant: its value, what it says, and what the user can do.
type entry struct{ value, says, do string }

func reasonsPage() ([]byte, error) {
	_, files, err := sources(contract)
	if err != nil {
		return nil, err
	}
	var conditions []entry
	var groups []group
	for _, file := range files {
		for _, decl := range file.Decls {
			constants, ok := decl.(*ast.GenDecl)
			if !ok || constants.Tok != token.CONST {
				continue
			}
			g := group{text: constants.Doc.Text()}
			for _, spec := range constants.Specs {
				e, kind, err := entryOf(constants, spec)
				if err != nil {
					return nil, err
				}
				switch kind {
				case "condition":
					conditions = append(conditions, e)
				case "reason":
					g.entries = append(g.entries, e)
				}
			}
			if len(g.entries) > 0 {
				groups = append(groups, g)
			}
		}
	}
	return render(conditions, groups), nil
}

// entryOf reads a constant: a condition's type, a reason, or neither.
func entryOf(block *ast.GenDecl, spec ast.Spec) (e entry, kind string, err error) {
	v, ok := spec.(*ast.ValueSpec)
	if !ok || len(v.Names) != 1 || len(v.Values) != 1 {
		return e, "", nil
	}
	name := v.Names[0].Name
	switch {
	case strings.HasPrefix(name, "Condition"), strings.HasSuffix(selected(v.Type), "ConditionType"):
		kind = "condition"
	case strings.HasPrefix(name, "Reason"):
		kind = "reason"
	default:
		return e, "", nil
	}
	if e.value, ok = literal(v.Values[0]); !ok {
		sum, isSum := v.Values[0].(*ast.BinaryExpr) // Prefix + "…"
		if !isSum {
			return e, "", fmt.Errorf("%s: its value is no literal", name)
		}
		suffix, _ := literal(sum.Y)
		e.value = "xylem.io/" + suffix
	}
	doc := v.Doc
	if doc == nil && len(block.Specs) == 1 {
		doc = block.Doc
	}
	text := strings.TrimPrefix(strings.TrimPrefix(strings.Join(strings.Fields(doc.Text()), " "), name), ":")
	text = constant.ReplaceAllString(strings.TrimPrefix(strings.TrimSpace(text), "is the condition "), "$1")
	e.says, e.do, ok = strings.Cut(text, toDo)
	if kind == "reason" && (!ok || strings.TrimSpace(e.says) == "" || strings.TrimSpace(e.do) == "") {
		return e, "", fmt.Errorf("%s: its comment has to say what it is and, after %q, what the user can do", name, toDo)
	}
	return e, kind, nil
}

func render(conditions []entry, groups []group) []byte {
	var b bytes.Buffer
	b.WriteString(`# Conditions and reasons

Every condition, and every reason of events, conditions and statuses, with what to do. ` + "`make generate`" + ` writes this page from
the comments in ` + "`" + contract + "`" + `. The message beside a reason has the names. Xylem repeats Warning events of leaf objects on
their roots, with the member's own reasons, which are not listed here. ` + "`kubectl xylem tree`" + ` shows all of them in one place.
[TROUBLESHOOTING.md](../charts/xylem/TROUBLESHOOTING.md) goes by symptom.

## Conditions

| Condition | Meaning |
|---|---|
`)
	for _, e := range conditions {
		fmt.Fprintf(&b, "| `%s` | %s |\n", e.value, cell(e.says))
	}
	for _, g := range groups {
		title, rest, _ := strings.Cut(strings.Join(strings.Fields(g.text), " "), ". ")
		fmt.Fprintf(&b, "\n## %s\n\n", strings.TrimSuffix(title, "."))
		if rest = strings.TrimSpace(rest); rest != "" {
			fmt.Fprintf(&b, "%s\n\n", rest)
		}
		b.WriteString("| Reason | Meaning | To do |\n|---|---|---|\n")
		for _, e := range g.entries {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.value, cell(e.says), cell(e.do))
		}
	}
	return b.Bytes()
}
