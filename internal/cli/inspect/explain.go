package inspect

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// ExplainReason splits a condition's message into what happened, without a period, and what to do. If the
// message contains no remedy, toDo is the next step for the reason.
func ExplainReason(reason, message string) (what, toDo string) {
	what, toDo = split(message)
	if toDo == "" {
		toDo = toDoFor(reason, message)
	}
	if toDo == nothing {
		toDo = ""
	}
	return cmp.Or(what, reason), toDo
}

const (
	// nothing is the text in REASONS.md for reasons that require no action.
	nothing = "Nothing."
	// asFor introduces a reference to another reason, or to the one at the start of the message.
	asFor      = "As for "
	asForFirst = asFor + "the reason at the beginning of the message."
)

// toDoFor returns the next step for a reason whose message contains none.
func toDoFor(reason, message string) string {
	toDo := cmp.Or(ToDoOfKubernetes[reason], ToDoOfXylem[reason])
	switch other, refers := strings.CutPrefix(toDo, asFor); {
	case !refers:
		return toDo
	case toDo == asForFirst:
		other, message, _ = strings.Cut(message, ": ")
		return toDoFor(other, message)
	default:
		return toDoFor(strings.TrimSuffix(other, "."), message)
	}
}

// boundary matches the end of a sentence in a message and the first word of the next one. Messages
// are `what happened: why. What to do.`
var boundary = regexp.MustCompile(`[.?] +([A-Z][a-z-]+|` + "`" + `)`)

// remedies are the first words of remedies. They distinguish a remedy from the sentences of other
// messages that a message quotes, which begin with other words.
var remedies = sets.New("Add", "Apply", "Ask", "Bring", "Change", "Check", "Choose", "Confirm", "Copy", "Correct", "Create", "Delete", "Deregister", "End", "Find",
	"Fix", "Free", "Give", "Grant", "Have", "If", "Install", "Its", "Leave", "Let", "Make", "Name", "Nothing", "Put", "Raise", "Re-create", "Register",
	"Remove", "Rename", "Request", "Rescue", "Restore", "Run", "See", "Set", "Specify", "Stop", "To", "Try", "Uncordon", "Use", "Wait", "Write", "`")

// split splits a message into what happened and what to do.
func split(message string) (what, toDo string) {
	message = strings.TrimSpace(message)
	found := boundary.FindAllStringSubmatchIndex(message, -1)
	at := slices.IndexFunc(found, func(m []int) bool { return remedies.Has(message[m[2]:m[3]]) })
	if at < 0 {
		return strings.TrimSuffix(message, "."), ""
	}
	end, next := found[at][0], found[at][2]
	return strings.TrimSuffix(message[:end+1], "."), EndSentence(message[next:])
}

// EndSentence adds a period to a text, unless it is empty or has one.
func EndSentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
