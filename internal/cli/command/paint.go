package command

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Paint colours words, or does not.
type Paint struct{ on bool }

// PaintOf is what suits a stream.
func (e *Env) PaintOf(w io.Writer) Paint { return Paint{e.colored(w)} }

// The sequences that colour words, as terminals know them (ECMA-48, SGR).
const (
	green     = "\x1b[32m"
	red       = "\x1b[31m"
	yellow    = "\x1b[33m"
	bold      = "\x1b[1m"
	faint     = "\x1b[2m"
	uncolored = "\x1b[0m"
	// client-go colours the word "Warning:" so.
	warning = "\x1b[33;1m"
)

// colours are all sequences that pass to a stream with colours.
var colours = [][]byte{[]byte(green), []byte(red), []byte(yellow), []byte(bold), []byte(faint), []byte(uncolored), []byte(warning)}

// Good is of what is as it should be.
func (p Paint) Good(s string) string { return p.in(green, s) }

// Bad is of what is not.
func (p Paint) Bad(s string) string { return p.in(red, s) }

// Doubtful is of what may become so, or is on its way.
func (p Paint) Doubtful(s string) string { return p.in(yellow, s) }

// Strong is of what a reader looks for first.
func (p Paint) Strong(s string) string { return p.in(bold, s) }

// Faint is of what can be passed over.
func (p Paint) Faint(s string) string { return p.in(faint, s) }

func (p Paint) in(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return code + s + uncolored
}

// Width of the terminal that a stream is, in characters; 0 if it is none.
func (e *Env) Width(w io.Writer) int {
	file, ok := behind(w).(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}
