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

// Good is of what is as it should be.
func (p Paint) Good(s string) string { return p.in("32", s) }

// Bad is of what is not.
func (p Paint) Bad(s string) string { return p.in("31", s) }

// Doubtful is of what may become so, or is on its way.
func (p Paint) Doubtful(s string) string { return p.in("33", s) }

// Strong is of what a reader looks for first.
func (p Paint) Strong(s string) string { return p.in("1", s) }

// Faint is of what can be passed over.
func (p Paint) Faint(s string) string { return p.in("2", s) }

func (p Paint) in(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Width of the terminal that a stream is, in characters; 0 if it is none.
func (e *Env) Width(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}
