package inspect

import (
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// Wrap breaks a text into lines of the given width, at spaces or, if a word is longer than a line,
// within the word. 0 means unlimited.
func Wrap(text string, width int) []string {
	if text == "" {
		return nil
	}
	if width <= 0 {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:width])), string(runes[width:])
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// ReportsProblem reports whether a condition reports a problem or an object that is not ready yet.
func ReportsProblem(c Condition) bool {
	return strings.HasPrefix(c.Type, v1alpha1.Prefix) && c.Status == string(metav1.ConditionFalse) && !FalseAtRest(c) ||
		strings.HasSuffix(c.Type, "Error") && c.Status == string(metav1.ConditionTrue)
}

// FalseAtRest reports whether a condition is False only because no Pod uses the claim.
func FalseAtRest(c Condition) bool {
	return c.Reason == v1alpha1.ReasonPromised || c.Type == string(v1alpha1.ClaimAttached) && c.Reason == v1alpha1.ReasonDetached
}
