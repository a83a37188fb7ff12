package volume

import (
	"fmt"
	"strings"
)

// Page shows the table in Markdown.
func Page() string {
	var b strings.Builder
	for i := range table {
		section := &table[i]
		fmt.Fprintf(&b, "\n## %s\n\n", section.title)
		if len(section.when) > 0 {
			fmt.Fprintf(&b, "All rows: %s.\n\n", texts(section.when))
		}
		b.WriteString("| Phase | If | Step, or wait | Controller | The user reads |\n|---|---|---|---|---|\n")
		for j := range section.rows {
			r := &section.rows[j]
			next := "wait until " + r.until
			if r.step != None {
				next = "**" + string(r.step) + "**"
			}
			condition := texts(r.when)
			if condition == "" {
				condition = "otherwise"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.phase, condition, next, r.owner, r.told)
		}
	}
	b.WriteString("\n## Steps\n\n| Step | What it does | Evidence, or proofs |\n|---|---|---|\n")
	for _, s := range steps {
		proofs := s.proofs
		if s.evidence != "" {
			proofs = "**" + s.evidence + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.step, s.does, proofs)
	}
	return b.String()
}

func texts(facts []fact) string {
	all := make([]string, len(facts))
	for i, f := range facts {
		all[i] = f.text
	}
	return strings.Join(all, "; ")
}
