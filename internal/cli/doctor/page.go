package doctor

import (
	"fmt"
	"strings"

	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/wording"
)

// page prints a checkup as text.
type page struct {
	inspect.Page
	// problems omits findings that are OK.
	problems bool
}

// mark formats a level: as wide as the longest one, with two spaces on each side.
const mark = "  %-7s  "

func (p page) printCheckup(c *Checkup) {
	cluster, printed := "-", false
	for _, f := range c.Findings {
		if p.problems && f.Level == OK {
			continue
		}
		if f.Cluster != cluster {
			cluster = f.Cluster
			p.printHeading(cluster)
		}
		p.printFinding(f)
		printed = true
	}
	for i, m := range c.Missing {
		if i == 0 {
			fmt.Fprintln(p.Out, p.Paint.Strong("Not checked"))
			printed = true
		}
		where := ""
		if m.Cluster != "" {
			where = " in " + m.Cluster
		}
		p.Paragraph("  ", nil, nil, m.What+where+": "+m.Why)
	}
	if printed {
		fmt.Fprintln(p.Out)
	}
	fmt.Fprintf(p.Out, "%d ok, %s, %s\n", c.Counts.OK, wording.CountNoun(c.Counts.Warnings, "warning"), wording.CountNoun(c.Counts.Errors, "error"))
}

func (p page) printHeading(cluster string) {
	name := "Host"
	if cluster != "" {
		name = "Member " + cluster
	}
	fmt.Fprintln(p.Out, p.Paint.Strong(name))
}

func (p page) printFinding(f Finding) {
	level := fmt.Sprintf(mark, strings.ToLower(string(f.Level)))
	paint := p.Paint.PaintGood
	switch f.Level {
	case OK:
	case Warning:
		paint = p.Paint.Doubtful
	case Error:
		paint = p.Paint.PaintBad
	}
	p.Paragraph(level, paint, nil, inspect.EndSentence(f.Message))
	if f.ToDo != "" {
		p.Paragraph(strings.Repeat(" ", len(level)), nil, nil, "To do: "+inspect.EndSentence(f.ToDo))
	}
}
