package tree

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/xylem-io/xylem/internal/cli/command"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// least is the minimum width, in characters, of a column into which text is wrapped.
const least = 24

// Page defines the layout of a printed tree.
type Page struct {
	// Width is the width of the terminal in characters; 0 means unlimited.
	Width int
	Paint command.Paint
	Now   time.Time
}

// row is the line of one object. branch is its prefix, and stem is the prefix of the lines below
// it.
type row struct {
	node         *inspect.Node
	branch, stem string
}

func (r row) object() string {
	name := r.node.Name
	if r.node.Namespace != "" {
		name = r.node.Namespace + "/" + name
	}
	return r.node.Kind + " " + name
}

func (r row) cluster() string {
	if r.node.Cluster == "" {
		return "(host)"
	}
	return r.node.Cluster
}

// Print prints the whole tree.
func (p Page) Print(w io.Writer, t *inspect.Tree) {
	rows := lay(&t.Root, "", "")
	widths := [4]int{len("OBJECT"), len("CLUSTER"), len("STATE"), len("AGE")}
	for _, r := range rows {
		for i, cell := range []string{r.branch + r.object(), r.cluster(), r.node.State, p.age(r.node)} {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	start := 4 * 2
	for _, w := range widths {
		start += w
	}
	beside := p.Width == 0 || p.Width-start >= least
	if p.Width > 0 && start > p.Width {
		widths = [4]int{} // too narrow for columns
	}
	header := pad("OBJECT", widths[0]) + "  " + pad("CLUSTER", widths[1]) + "  " + pad("STATE", widths[2]) + "  " + pad("AGE", widths[3])
	if beside {
		header += "  DETAILS"
	}
	fmt.Fprintln(w, p.Paint.Strong(strings.TrimRight(header, " ")))
	for _, r := range rows {
		p.row(w, r, widths, start, beside)
	}
	p.footer(w, t)
}

func (p Page) row(w io.Writer, r row, widths [4]int, start int, beside bool) {
	line := p.Paint.Faint(r.branch) + pad(r.object(), widths[0]-utf8.RuneCountInString(r.branch)) + "  " +
		pad(r.cluster(), widths[1]) + "  " + p.health(r.node.Health, pad(r.node.State, widths[2])) + "  " + pad(p.age(r.node), widths[3])
	details := slices.Clone(r.node.Details)
	if r.node.Driver != "" {
		details = append(details, "driver "+r.node.Driver)
	}
	if r.node.Handle != "" {
		details = append(details, "handle "+r.node.Handle)
	}
	text := strings.Join(details, ", ")
	stem := r.stem
	if len(r.node.Children) > 0 {
		stem += "│ "
	} else {
		stem += "  "
	}
	if beside {
		parts := inspect.Wrap(text, p.left(start))
		if len(parts) > 0 {
			line += "  " + parts[0]
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		for _, part := range parts[min(1, len(parts)):] {
			fmt.Fprintln(w, p.Paint.Faint(pad(stem, start))+part)
		}
	} else {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		p.note(w, stem, "", text)
	}
	for _, c := range r.node.Conditions {
		mark := p.Paint.Faint("·")
		switch {
		case inspect.ReportsProblem(c):
			mark = p.Paint.Bad("!")
		case c.Status != string(metav1.ConditionTrue) && !inspect.FalseAtRest(c):
			mark = p.Paint.Doubtful("!")
		}
		p.note(w, stem, mark+" ", fmt.Sprintf("%s=%s %s%s%s", c.Type, c.Status, c.Reason, p.since("", c.Since.Time), colon(c.Message)))
	}
	for _, e := range r.node.Events {
		mark := p.Paint.Faint("·")
		if e.Type == "Warning" {
			mark = p.Paint.Doubtful("!")
		}
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf("%d times, ", e.Count)
		}
		p.note(w, stem, mark+" ", fmt.Sprintf("%s %s%s%s", e.Type, e.Reason, p.since(times, e.Last.Time), colon(e.Message)))
	}
}

// note prints a text below an object, prefixed with a mark of one character.
func (p Page) note(w io.Writer, stem, mark, text string) {
	indent := utf8.RuneCountInString(stem)
	if mark != "" {
		indent += 2
	}
	for i, part := range inspect.Wrap(text, p.left(indent)) {
		if i > 0 && mark != "" {
			mark = "  "
		}
		fmt.Fprintln(w, p.Paint.Faint(stem)+mark+part)
	}
}

// footer prints which objects could not be read, and how to read the members.
func (p Page) footer(w io.Writer, t *inspect.Tree) {
	for i, m := range t.Missing {
		if i == 0 {
			fmt.Fprintln(w)
		}
		where := "host"
		if m.Cluster != "" {
			where = m.Cluster
		}
		for j, part := range inspect.Wrap(fmt.Sprintf("could not read %s (%s): %s", m.What, where, m.Why), p.left(2)) {
			mark := p.Paint.Bad("! ")
			if j > 0 {
				mark = "  "
			}
			fmt.Fprintln(w, mark+part)
		}
	}
	if len(t.Recorded) == 0 {
		return
	}
	fmt.Fprintln(w)
	text := fmt.Sprintf("For %s, only the host's records are shown. Use --live to read members with their registrations' kubeconfigs, or --member-kubeconfig to read one with your own.", strings.Join(t.Recorded, ", "))
	for _, part := range inspect.Wrap(text, p.left(0)) {
		fmt.Fprintln(w, p.Paint.Faint(part))
	}
}

// lay returns the rows of a tree, with their branches.
func lay(n *inspect.Node, branch, stem string) []row {
	rows := []row{{n, branch, stem}}
	for i := range n.Children {
		if i == len(n.Children)-1 {
			rows = append(rows, lay(&n.Children[i], stem+"└─", stem+"  ")...)
		} else {
			rows = append(rows, lay(&n.Children[i], stem+"├─", stem+"│ ")...)
		}
	}
	return rows
}

func (p Page) health(h inspect.Health, text string) string {
	switch h {
	case inspect.Good:
		return p.Paint.Good(text)
	case inspect.Waiting:
		return p.Paint.Doubtful(text)
	case inspect.Bad:
		return p.Paint.Bad(text)
	case inspect.Unknown:
	}
	return p.Paint.Faint(text)
}

func (p Page) age(n *inspect.Node) string {
	if n.Created == nil {
		return "-"
	}
	return duration.HumanDuration(p.Now.Sub(n.Created.Time))
}

func (p Page) since(before string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (%s%s ago)", before, duration.HumanDuration(p.Now.Sub(t)))
}

// left returns the width that remains after an indent; 0 means unlimited.
func (p Page) left(indent int) int {
	if p.Width == 0 {
		return 0
	}
	return max(least, p.Width-indent)
}

func colon(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
