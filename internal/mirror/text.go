package mirror

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// textLimit is the maximum length, in bytes, of a string that is mirrored from a member. It is
	// the length to which a kubelet truncates a container's termination message
	// (kubecontainer.MaxContainerTerminationMessageLength). API servers do not truncate.
	textLimit = 4096
	// listLimit is the maximum number of entries in a mirrored list or map. Kubelets and resizers
	// write fewer.
	listLimit = 256
	// namesLimit is the maximum length, in bytes, of a list of names in a message.
	namesLimit = 500
	// ellipsis replaces truncated text.
	ellipsis = "…"
)

// QuotedMemberNames returns names that a member chose as a quoted list for a message.
func QuotedMemberNames(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, strconv.Quote(name))
	}
	return PlainText(strings.Join(quoted, ", "), namesLimit)
}

// PlainText makes untrusted text safe to show and store: valid UTF-8, at most limit bytes of whole
// characters, without control characters that a terminal would interpret (except line breaks and
// tabs) or characters that change the writing direction.
func PlainText(text string, limit int) string {
	long := len(text) > limit
	if long {
		text = text[:limit-len(ellipsis)]
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "")
	}
	if strings.ContainsFunc(text, isControlCharacter) {
		text = strings.Map(func(r rune) rune {
			if isControlCharacter(r) {
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

// PlainLine returns PlainText on one line, so that it can be quoted within a sentence. It replaces each run
// of white space with one space, and removes the final period.
func PlainLine(text string, limit int) string {
	return PlainText(strings.TrimSuffix(strings.Join(strings.Fields(text), " "), "."), limit)
}

// directionMarks lists the characters that change the writing direction.
var directionMarks = []rune{'\u061c', '\u200e', '\u200f', '\u202a', '\u202b', '\u202c', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069'}

func isControlCharacter(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r > unicode.MaxLatin1 && slices.Contains(directionMarks, r)
}
