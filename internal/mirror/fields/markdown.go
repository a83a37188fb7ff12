package fields

import (
	"fmt"
	"strings"
)

// RenderMarkdown returns the content of FIELDS.md, which documents all decisions.
func RenderMarkdown(tables []Table) string {
	var b strings.Builder
	b.WriteString(`# What Xylem does with each field

Generated from the tables of package mirror and its subpackages by ` + "`go test ./internal/mirror -run TestFieldsDoc -update`" + `. **Keep** copies a field with everything in it; **Translate** copies it with changes; **Drop** omits it; **Refuse** means that Xylem does not push an object that sets the field, and an event on that object reports why. A field's entry also applies to the fields nested in it. A test fails when a new version of the API adds a field without a decision.
`)
	for _, t := range tables {
		fmt.Fprintf(&b, "\n## %s\n\n| Field | Decision | Why, or how |\n|---|---|---|\n", t.Title)
		for _, f := range t.Fields {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Path, f.Decision, f.Why)
		}
	}
	return b.String()
}
