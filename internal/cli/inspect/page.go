package inspect

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/xylem-io/xylem/internal/cli/command"
)

// leastWidth is the minimum width, in characters, of a column into which text is wrapped.
const leastWidth = 20

// Page prints text within the width of a terminal.
type Page struct {
	Out   io.Writer
	Paint command.Paint
	// Width is the width of the terminal in characters; 0 means unlimited.
	Width int
	Now   time.Time
}

// PageOfCommand returns the page for a command's output.
func PageOfCommand(env *command.Env) Page {
	return Page{Out: env.Out, Paint: env.PaintOf(env.Out), Width: env.Width(env.Out), Now: env.Clock.Now()}
}

// Paragraph prints a text after a lead. Further lines are indented by the lead's width. paintLead and
// paintText color them, unless they are nil.
func (p Page) Paragraph(lead string, paintLead, paintText func(string) string, text string) {
	indent := utf8.RuneCountInString(lead)
	for i, line := range Wrap(text, p.widthAfter(indent)) {
		if i > 0 {
			lead, paintLead = strings.Repeat(" ", indent), nil
		}
		fmt.Fprintln(p.Out, paintedText(paintLead, lead)+paintedText(paintText, line))
	}
}

func paintedText(paint func(string) string, text string) string {
	if paint == nil {
		return text
	}
	return paint(text)
}

// widthAfter returns the width that remains after an indent; 0 means unlimited.
func (p Page) widthAfter(indent int) int {
	if p.Width == 0 {
		return 0
	}
	return max(leastWidth, p.Width-indent)
}

// TimeAgo returns how long ago a time was.
func (p Page) TimeAgo(t time.Time) string {
	if t.IsZero() {
		return "at an unknown time"
	}
	return duration.HumanDuration(p.Now.Sub(t)) + " ago"
}

// PrintWatchTime prints the time, before each output of --watch.
func (p Page) PrintWatchTime() { fmt.Fprintf(p.Out, "\n%s\n", p.Now.Format(time.TimeOnly)) }
