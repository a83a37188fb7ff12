package lifecycle

import (
	"fmt"
	"strings"
)

// Page renders the table as Markdown.
func Page() string {
	var b strings.Builder
	for i := range table {
		table[i].write(&b)
	}
	b.WriteString("\n## Steps\n\n| Step | What it does | Evidence, or proofs |\n|---|---|---|\n")
	for _, s := range steps {
		needs := strings.Join(s.needs.Proofs, ", ")
		if len(s.needs.Evidence) > 0 {
			needs = fmt.Sprintf("**%s**: %s", strings.Join(s.needs.Evidence, ", "), needs)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.step, s.does, needs)
	}
	return b.String()
}

func (s *section) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n", s.title)
	if len(s.when) > 0 {
		fmt.Fprintf(b, "All rows: %s.\n\n", texts(s.when))
	}
	b.WriteString("| Phase | If | **Step**, or wait | Controller | The user reads |\n|---|---|---|---|---|\n")
	for i := range s.rows {
		r := &s.rows[i]
		next, condition := "until "+r.until, texts(r.when)
		if r.step != None {
			next = "**" + string(r.step) + "**"
		}
		if condition == "" {
			condition = "otherwise"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", r.phase, condition, next, r.owner, r.reason)
	}
}

func texts(facts []fact) string {
	all := make([]string, 0, len(facts))
	for _, f := range facts {
		all = append(all, f.text)
	}
	return strings.Join(all, "; ")
}
