package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
)

// Styles of text on a terminal (SGR parameters).
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// clearLine moves to the beginning of the line and erases it.
const clearLine = "\r\x1b[K"

// console prints lines from many goroutines. On a terminal, it also shows a temporary status line
// below them.
type console struct {
	terminal, colours bool

	mu     sync.Mutex
	out    io.Writer
	status string
	// begun is the number of sections so far.
	begun int
	// unreadable are the lines that contain unlimitedSize.
	unreadable []string
}

// recordVariable is the environment variable that names a file to which the demo also writes its
// output, with colors. test/gen/pictures draws the README's picture from it.
const recordVariable = "DEMO_RECORD"

// newConsole creates a console that writes to out. It is interactive if both files are
// terminals.
func newConsole(in, out *os.File) (*console, error) {
	terminal := isTerminal(in) && isTerminal(out)
	c := &console{out: out, terminal: terminal, colours: isTerminal(out) && os.Getenv("NO_COLOR") == ""}
	path := os.Getenv(recordVariable)
	if path == "" {
		return c, nil
	}
	record, err := os.Create(path) //nolint:gosec // Named by the user of the demo.
	if err != nil {
		return nil, fmt.Errorf("create the recording: %w", err)
	}
	c.out, c.terminal, c.colours = io.MultiWriter(out, record), false, true
	return c, nil
}

// isTerminal reports whether a file is a terminal, by its mode.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// line prints one or more lines above the status line.
func (c *console) line(format string, args ...any) {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	fmt.Fprintln(c.out, strings.TrimRight(text, " \n"))
	c.draw()
	if strings.Contains(text, unlimitedSize) {
		c.unreadable = append(c.unreadable, text)
	}
}

// unlimited returns the lines that show an unlimited size as a number.
func (c *console) unlimited() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.unreadable)
}

// section prints the number and the title of a part of the demo.
func (c *console) section(title string) {
	c.begun++
	c.title(fmt.Sprintf("%d of %d: %s", c.begun, sections, title))
}

// title prints the title of a part that has no number.
func (c *console) title(text string) {
	c.line("")
	c.line("%s", c.style(bold, "== "+text))
}

// say replaces the status line; "" removes it. If the output is not a terminal, it prints the text
// as a line.
func (c *console) say(text string) {
	if !c.terminal {
		if text != "" {
			c.line("   ... %s", text)
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	c.status = text
	c.draw()
}

func (c *console) erase() {
	if c.status != "" {
		fmt.Fprint(c.out, clearLine)
	}
}

func (c *console) draw() {
	if c.status != "" {
		fmt.Fprint(c.out, c.style(dim, clip("   ... "+c.status, tableWidth)))
	}
}

// style colors text if colors are enabled.
func (c *console) style(sgr, text string) string {
	if !c.colours || text == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

// mark returns the symbol for a check's result.
func (c *console) mark(ok bool) string {
	switch {
	case ok && c.terminal:
		return c.style(green, "✓")
	case ok:
		return c.style(green, "ok")
	case c.terminal:
		return c.style(red, "✗")
	default:
		return c.style(red, "!!")
	}
}
