package tree

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// page prints a tree as text.
type page struct{ inspect.Page }

// leastDetails is the minimum width, in characters, of the column with the details.
const leastDetails = 24

// treeRow is the line of one object. branch is its prefix, and stem is the prefix of the lines below
// it.
type treeRow struct {
	node         *inspect.Node
	branch, stem string
}

func (r treeRow) describe() string {
	name := r.node.Name
	if r.node.Namespace != "" {
		name = r.node.Namespace + "/" + name
	}
	return r.node.Kind + " " + name
}

func (r treeRow) clusterName() string {
	if r.node.Cluster == "" {
		return "(host)"
	}
	return r.node.Cluster
}

// printTree prints the whole tree.
func (p page) printTree(t *inspect.Tree) {
	rows := rowsOfTree(&t.Root, "", "")
	widths := [4]int{len("OBJECT"), len("CLUSTER"), len("STATE"), len("AGE")}
	for _, r := range rows {
		for i, cell := range []string{r.branch + r.describe(), r.clusterName(), r.node.State, p.ageOfNode(r.node)} {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	start := 4 * 2
	for _, w := range widths {
		start += w
	}
	beside := p.Width == 0 || p.Width-start >= leastDetails
	if p.Width > 0 && start > p.Width {
		widths = [4]int{} // too narrow for columns
	}
	header := padToWidth("OBJECT", widths[0]) + "  " + padToWidth("CLUSTER", widths[1]) + "  " + padToWidth("STATE", widths[2]) + "  " + padToWidth("AGE", widths[3])
	if beside {
		header += "  DETAILS"
	}
	fmt.Fprintln(p.Out, p.Paint.Strong(strings.TrimRight(header, " ")))
	for _, r := range rows {
		p.printRow(r, widths, start, beside)
	}
	p.printFooter(t)
}

func (p page) printRow(r treeRow, widths [4]int, start int, beside bool) {
	line := p.Paint.Faint(r.branch) + padToWidth(r.describe(), widths[0]-utf8.RuneCountInString(r.branch)) + "  " +
		padToWidth(r.clusterName(), widths[1]) + "  " + p.paintedByHealth(r.node.Health, padToWidth(r.node.State, widths[2])) + "  " + padToWidth(p.ageOfNode(r.node), widths[3])
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
		parts := inspect.Wrap(text, p.widthOfNotes(start))
		if len(parts) > 0 {
			line += "  " + parts[0]
		}
		fmt.Fprintln(p.Out, strings.TrimRight(line, " "))
		for _, part := range parts[min(1, len(parts)):] {
			fmt.Fprintln(p.Out, p.Paint.Faint(padToWidth(stem, start))+part)
		}
	} else {
		fmt.Fprintln(p.Out, strings.TrimRight(line, " "))
		p.printNote(stem, "", text)
	}
	for _, c := range r.node.Conditions {
		mark := p.Paint.Faint("·")
		switch {
		case inspect.ReportsProblem(c):
			mark = p.Paint.PaintBad("!")
		case c.Status != string(metav1.ConditionTrue) && !inspect.FalseAtRest(c):
			mark = p.Paint.Doubtful("!")
		}
		p.printNote(stem, mark+" ", fmt.Sprintf("%s=%s %s%s%s", c.Type, c.Status, c.Reason, p.timeSince("", c.Since.Time), withColon(c.Message)))
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
		p.printNote(stem, mark+" ", fmt.Sprintf("%s %s%s%s", e.Type, e.Reason, p.timeSince(times, e.Last.Time), withColon(e.Message)))
	}
}

// printNote prints a text below an object, prefixed with a mark of one character.
func (p page) printNote(stem, mark, text string) {
	indent := utf8.RuneCountInString(stem)
	if mark != "" {
		indent += 2
	}
	for i, part := range inspect.Wrap(text, p.widthOfNotes(indent)) {
		if i > 0 && mark != "" {
			mark = "  "
		}
		fmt.Fprintln(p.Out, p.Paint.Faint(stem)+mark+part)
	}
}

// printFooter prints which objects could not be read, and how to read the members.
func (p page) printFooter(t *inspect.Tree) {
	for i, m := range t.Missing {
		if i == 0 {
			fmt.Fprintln(p.Out)
		}
		where := "host"
		if m.Cluster != "" {
			where = m.Cluster
		}
		p.Paragraph("! ", p.Paint.PaintBad, nil, fmt.Sprintf("could not read %s (%s): %s", m.What, where, m.Why))
	}
	if len(t.Recorded) == 0 {
		return
	}
	fmt.Fprintln(p.Out)
	p.Paragraph("", nil, p.Paint.Faint, fmt.Sprintf("For %s, only the host's records are shown. Use --live to read members with their registrations' kubeconfigs, or --member-kubeconfig to read one with your own.", strings.Join(t.Recorded, ", ")))
}

// rowsOfTree returns the rows of a tree, with their branches.
func rowsOfTree(n *inspect.Node, branch, stem string) []treeRow {
	rows := []treeRow{{n, branch, stem}}
	for i := range n.Children {
		if i == len(n.Children)-1 {
			rows = append(rows, rowsOfTree(&n.Children[i], stem+"└─", stem+"  ")...)
		} else {
			rows = append(rows, rowsOfTree(&n.Children[i], stem+"├─", stem+"│ ")...)
		}
	}
	return rows
}

func (p page) paintedByHealth(h inspect.Health, text string) string {
	switch h {
	case inspect.Good:
		return p.Paint.PaintGood(text)
	case inspect.Waiting:
		return p.Paint.Doubtful(text)
	case inspect.Bad:
		return p.Paint.PaintBad(text)
	case inspect.Unknown:
	}
	return p.Paint.Faint(text)
}

func (p page) ageOfNode(n *inspect.Node) string {
	if n.Created == nil {
		return "-"
	}
	return duration.HumanDuration(p.Now.Sub(n.Created.Time))
}

func (p page) timeSince(before string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (%s%s ago)", before, duration.HumanDuration(p.Now.Sub(t)))
}

// widthOfNotes returns the width of notes after an indent; 0 means unlimited.
func (p page) widthOfNotes(indent int) int {
	if p.Width == 0 {
		return 0
	}
	return max(leastDetails, p.Width-indent)
}

func withColon(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

func padToWidth(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
