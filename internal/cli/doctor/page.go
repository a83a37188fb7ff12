package doctor

import (
	"fmt"
	"strings"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/text"
)

// page prints a checkup as text.
type page struct {
	paint command.Paint
	// width is the width of the terminal in characters; 0 means unlimited.
	width int
	// problems omits findings that are OK.
	problems bool
}

// mark formats a level: as wide as the longest one, with two spaces on each side.
const mark = "  %-7s  "

func (p page) print(c *Checkup) string {
	var out strings.Builder
	cluster := "-"
	for _, f := range c.Findings {
		if p.problems && f.Level == OK {
			continue
		}
		if f.Cluster != cluster {
			cluster = f.Cluster
			p.heading(&out, cluster)
		}
		p.finding(&out, f)
	}
	for i, m := range c.Missing {
		if i == 0 {
			fmt.Fprintf(&out, "%s\n", p.paint.Strong("Not checked"))
		}
		where := ""
		if m.Cluster != "" {
			where = " in " + m.Cluster
		}
		p.paragraph(&out, "  ", nil, m.What+where+": "+m.Why)
	}
	if out.Len() > 0 {
		fmt.Fprintln(&out)
	}
	fmt.Fprintf(&out, "%d ok, %s, %s\n", c.Counts.OK, text.Count(c.Counts.Warnings, "warning"), text.Count(c.Counts.Errors, "error"))
	return out.String()
}

func (p page) heading(out *strings.Builder, cluster string) {
	name := "Host"
	if cluster != "" {
		name = "Member " + cluster
	}
	fmt.Fprintln(out, p.paint.Strong(name))
}

func (p page) finding(out *strings.Builder, f Finding) {
	level := fmt.Sprintf(mark, strings.ToLower(string(f.Level)))
	paint := p.paint.Good
	switch f.Level {
	case OK:
	case Warning:
		paint = p.paint.Doubtful
	case Error:
		paint = p.paint.Bad
	}
	p.paragraph(out, level, paint, inspect.Ended(f.Message))
	if f.ToDo != "" {
		p.paragraph(out, strings.Repeat(" ", len(level)), nil, "To do: "+inspect.Ended(f.ToDo))
	}
}

// paragraph prints a message within the width. Its first line begins with lead, colored by paint if
// that is set.
func (p page) paragraph(out *strings.Builder, lead string, paint func(string) string, message string) {
	width := p.width
	if width > 0 {
		width = max(width-len(lead), 20)
	}
	for i, line := range inspect.Wrap(message, width) {
		shown := lead
		switch {
		case i > 0:
			shown = strings.Repeat(" ", len(lead))
		case paint != nil:
			shown = paint(lead)
		}
		fmt.Fprintln(out, shown+line)
	}
}
