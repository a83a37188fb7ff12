package lifecycle

import (
	"fmt"
	"slices"
	"strings"
)

// Page returns the tables in Markdown.
func Page() string {
	var b strings.Builder
	for i := range table {
		fmt.Fprintf(&b, "\n## %s\n", table[i].title)
		if table[i].intro != "" {
			fmt.Fprintf(&b, "\n%s\n", table[i].intro)
		}
		for j := range table[i].sections {
			table[i].sections[j].write(&b)
		}
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

// write writes a section. If one controller owns all rows, it is named once.
func (s *section) write(b *strings.Builder) {
	one := !slices.ContainsFunc(s.rows, func(r row) bool { return r.owner != s.rows[0].owner })
	fmt.Fprintf(b, "\n### %s\n\n", s.title)
	condition := texts(s.when)
	if one {
		condition = fmt.Sprintf("%s; %s", condition, s.rows[0].owner)
	}
	if condition = strings.TrimPrefix(condition, "; "); condition != "" {
		fmt.Fprintf(b, "All rows: %s.\n\n", condition)
	}
	columns := []string{"Phase", "If", "**Step**, or wait", "Controller", "The user reads"}
	if one {
		columns = slices.Delete(columns, 3, 4)
	}
	fmt.Fprintf(b, "| %s |\n%s|\n", strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
	for i := range s.rows {
		cells := s.rows[i].cells()
		if one {
			cells = slices.Delete(cells, 3, 4)
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
}

func (r *row) cells() []string {
	next := "until " + r.until
	if r.step != None {
		next = "**" + string(r.step) + "**"
	}
	condition := texts(r.when)
	if condition == "" {
		condition = "otherwise"
	}
	return []string{string(r.phase), condition, next, string(r.owner), r.reason}
}

func texts(facts []fact) string {
	var all []string
	for _, f := range facts {
		if f.text != alone.text { // the part's title says so
			all = append(all, f.text)
		}
	}
	return strings.Join(all, "; ")
}
