package sanitize

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// textLimit in bytes of any one string that is carried up from a member: a
	// kubelet keeps that much of what a container leaves behind
	// (kubecontainer.MaxContainerTerminationMessageLength), and API servers cut
	// nothing.
	textLimit = 4096
	// listLimit of the entries of any one list or map that is carried up: more
	// than any kubelet or resizer writes.
	listLimit = 256
	// ellipsis represents what was cut off.
	ellipsis = "…"
)

// Plain is a text that somebody else wrote, made fit to be shown and stored:
// valid UTF-8 of so many bytes at most, in whole characters, without what a
// terminal would obey: control characters (line breaks and tabs excepted) and
// those that turn the direction of writing.
func Plain(text string, limit int) string {
	long := len(text) > limit
	if long {
		text = text[:limit-len(ellipsis)]
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "")
	}
	if strings.ContainsFunc(text, obeyed) {
		text = strings.Map(func(r rune) rune {
			if obeyed(r) {
				return -1
			}
			return r
		}, text)
	}
	if long {
		text += ellipsis
	}
	return text
}

// turns are the characters that change the direction of what follows.
var turns = []rune{'\u061c', '\u200e', '\u200f', '\u202a', '\u202b', '\u202c', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069'}

func obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r > unicode.MaxLatin1 && slices.Contains(turns, r)
}
