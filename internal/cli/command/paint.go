package command

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Paint colors text if it is enabled.
type Paint struct{ on bool }

// PaintOf returns a Paint that is enabled if the stream should be colored.
func (e *Env) PaintOf(w io.Writer) Paint { return Paint{e.isColored(w)} }

// Escape sequences for colors and styles (ECMA-48, SGR).
const (
	green     = "\x1b[32m"
	red       = "\x1b[31m"
	yellow    = "\x1b[33m"
	bold      = "\x1b[1m"
	faint     = "\x1b[2m"
	uncolored = "\x1b[0m"
	// client-go prints the word "Warning:" with this sequence.
	warning = "\x1b[33;1m"
)

// colours lists the sequences that may pass to a colored stream.
var colours = [][]byte{[]byte(green), []byte(red), []byte(yellow), []byte(bold), []byte(faint), []byte(uncolored), []byte(warning)}

// PaintGood colors text about good states.
func (p Paint) PaintGood(s string) string { return p.inColor(green, s) }

// PaintBad colors errors.
func (p Paint) PaintBad(s string) string { return p.inColor(red, s) }

// Doubtful colors states that are in transition or may become errors.
func (p Paint) Doubtful(s string) string { return p.inColor(yellow, s) }

// Strong emphasizes text that a reader looks for first.
func (p Paint) Strong(s string) string { return p.inColor(bold, s) }

// Faint dims text that a reader can skip.
func (p Paint) Faint(s string) string { return p.inColor(faint, s) }

// Drawing returns the error stream for output that needs a terminal, such as a line that changes.
// It returns nil if the stream is not a terminal. The stream is not stripped, so never write text
// from a cluster to it.
func (e *Env) Drawing() io.Writer {
	if isTerminal(e.ErrOut) {
		return streamBehindFilter(e.ErrOut)
	}
	return nil
}

func (p Paint) inColor(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return code + s + uncolored
}

// Width returns the width of a terminal in characters, or 0 if the stream is not a terminal.
func (e *Env) Width(w io.Writer) int {
	file, ok := streamBehindFilter(w).(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}
