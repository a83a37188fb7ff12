package states

import (
	"fmt"
	"slices"
	"strings"
)

// RenderMarkdown returns the table in Markdown.
func (t *Table[S]) RenderMarkdown() string {
	var b strings.Builder
	for i := range t.Parts {
		t.Parts[i].writePart(&b)
	}
	b.WriteString("\n## Steps\n\n| Step | What it does | Evidence, or proofs | May report |\n|---|---|---|---|\n")
	for _, a := range t.Steps {
		needs := strings.Join(a.Needs.Proofs, ", ")
		if len(a.Needs.Evidence) > 0 {
			needs = fmt.Sprintf("**%s**: %s", strings.Join(a.Needs.Evidence, ", "), needs)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", a.Step, a.Does, needs, strings.Join(a.Reasons, ", "))
	}
	return b.String()
}

func (p *Part[S]) writePart(b *strings.Builder) {
	heading := "##"
	if p.Title != "" {
		fmt.Fprintf(b, "\n## %s\n", p.Title)
		heading = "###"
	}
	if p.Intro != "" {
		fmt.Fprintf(b, "\n%s\n", p.Intro)
	}
	for i := range p.Sections {
		p.writeSection(b, heading, &p.Sections[i])
	}
}

// writeSection writes a section. If one controller owns all rows, the section names it only once.
func (p *Part[S]) writeSection(b *strings.Builder, heading string, s *Section[S]) {
	one := !slices.ContainsFunc(s.Rows, func(r Row[S]) bool { return r.Owner != s.Rows[0].Owner })
	fmt.Fprintf(b, "\n%s %s\n\n", heading, s.Title)
	var all []string
	if shared := p.conditionTexts(s.When); len(shared) > 0 {
		all = append(all, "All rows: "+strings.Join(shared, "; ")+".")
	}
	if one && s.Rows[0].Owner != "" {
		all = append(all, "Controller: "+string(s.Rows[0].Owner)+".")
	}
	if len(all) > 0 {
		fmt.Fprintf(b, "%s\n\n", strings.Join(all, " "))
	}
	columns := []string{"Phase", "If", "**Step**, or wait", "Controller", "Reported reason"}
	if one {
		columns = slices.Delete(columns, 3, 4)
	}
	fmt.Fprintf(b, "| %s |\n%s|\n", strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
	for i := range s.Rows {
		r := &s.Rows[i]
		next, condition := "until "+r.Until, strings.Join(p.conditionTexts(r.When), "; ")
		if r.Step != None {
			next = "**" + string(r.Step) + "**"
		}
		if condition == "" {
			condition = "otherwise"
		}
		cells := []string{string(r.Phase), condition, next, string(r.Owner), r.Reasons}
		if one {
			cells = slices.Delete(cells, 3, 4)
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
}

// conditionTexts returns the texts of facts, except for the condition that the part's title implies.
func (p *Part[S]) conditionTexts(facts []Fact[S]) []string {
	return slices.DeleteFunc(factTexts(facts), func(text string) bool { return text == p.Implied })
}
