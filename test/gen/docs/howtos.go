package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// howTos is the page whose tables of reasons are generated.
const howTos = "config/samples/README.md"

// reasonsMark matches a table of reasons, and the comments around it. The first comment names the
// reasons.
var reasonsMark = regexp.MustCompile(`(?s)<!-- reasons: ([\w ]+) -->\n.*?<!-- end of reasons -->\n`)

// howTosPage returns the page of how-tos with current tables of reasons.
func howTosPage() ([]byte, error) {
	page, err := os.ReadFile(howTos)
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	_, groups, err := reasons()
	if err != nil {
		return nil, err
	}
	out, err := withReasons(string(page), groups)
	return []byte(out), err
}

// withReasons replaces each marked table on a page. A reason that does not exist is an error.
func withReasons(page string, groups []group) (string, error) {
	known := map[string]entry{}
	for _, g := range groups {
		for _, e := range g.entries {
			known[e.value] = e
		}
	}
	var unknown []string
	out := reasonsMark.ReplaceAllStringFunc(page, func(marked string) string {
		names := reasonsMark.FindStringSubmatch(marked)[1]
		var b strings.Builder
		fmt.Fprintf(&b, "<!-- reasons: %s -->\n\n| reason | what it means | what to do |\n|---|---|---|\n", names)
		for name := range strings.FieldsSeq(names) {
			e, ok := known[name]
			if !ok {
				unknown = append(unknown, name)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, cell(e.says), cell(e.do))
		}
		b.WriteString("\n<!-- end of reasons -->\n")
		return b.String()
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("%s lacks these reasons: %s", contract, strings.Join(unknown, ", "))
	}
	return out, nil
}
