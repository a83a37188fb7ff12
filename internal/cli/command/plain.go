package command

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"unicode"
	"unicode/utf8"
)

// plain is an output stream for people. Any text may come from an attacker, so plain removes what a
// terminal would interpret or hide: control characters except line breaks and tabs, characters that
// reverse the writing direction or have no width, and invalid UTF-8. Of an escape sequence, it
// removes only the escape character.
type plain struct {
	to io.Writer
	// colored reports whether to keep the plugin's own colors.
	colored func(io.Writer) bool
	// rest is an incomplete character or sequence at the end of the data.
	rest []byte
}

// Write implements io.Writer. It reports all bytes as written, including dropped ones.
func (p *plain) Write(b []byte) (int, error) {
	text := slices.Concat(p.rest, b)
	var own [][]byte
	if p.colored(p.to) {
		own = colours
	}
	out, rest := strippedSequences(text, own)
	p.rest = bytes.Clone(rest)
	if _, err := p.to.Write(out); err != nil {
		return 0, fmt.Errorf("write the output: %w", err)
	}
	return len(b), nil
}

// strippedSequences returns a text without unsafe characters, and separately its incomplete end.
func strippedSequences(text []byte, own [][]byte) (out, rest []byte) {
	out = make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		sequence, partial := sequenceIn(text, own)
		switch {
		case partial, !utf8.FullRune(text):
			return out, text
		case sequence != nil:
			out, size = append(out, sequence...), len(sequence)
		case r == utf8.RuneError && size == 1, obeyedSequences(r):
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	return out, nil
}

// sequenceIn returns the sequence in own that the text starts with, if any. Otherwise, partial
// reports whether the text could be the start of one.
func sequenceIn(text []byte, own [][]byte) (sequence []byte, partial bool) {
	for _, s := range own {
		if bytes.HasPrefix(text, s) {
			return s, false
		}
		partial = partial || bytes.HasPrefix(s, text)
	}
	return nil, partial
}

func obeyedSequences(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf)
}
