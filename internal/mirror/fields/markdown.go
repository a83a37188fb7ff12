package fields

import (
	"fmt"
	"strings"
)

// Markdown is FIELDS.md: all decisions for people to read.
func Markdown(tables []Table) string {
	var b strings.Builder
	b.WriteString(`# What becomes of each field

Made from the tables of package mirror and those beneath it by ` + "`go test ./internal/mirror -run TestFieldsDoc -update`" + `. **Keep** carries a field, and all that is in it, as it is; **Translate** carries it changed; **Drop** leaves it out; **Refuse** does not push an object in which it is set, and an event on that object says why. A field that is not listed is decided by the entry above it. A test fails when a new version of the API adds a field that nobody decided on.
`)
	for _, t := range tables {
		fmt.Fprintf(&b, "\n## %s\n\n| Field | Decision | Why, or how |\n|---|---|---|\n", t.Title)
		for _, f := range t.Fields {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Path, f.Decision, f.Why)
		}
	}
	return b.String()
}
