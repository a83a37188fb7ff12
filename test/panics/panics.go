package panics

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const (
	// observed is the message with which controller-runtime and client-go log a recovered panic.
	observed = "Observed a panic"
	// stackLines is the number of lines that In reports from a panic's stack.
	stackLines = 24
)

// In returns the panics in a manager's log, each with its count and its stack. It includes panics
// that ended the manager, and panics from which controller-runtime recovered.
func In(log string) []string {
	var order []string
	count, text := map[string]int{}, map[string]string{}
	lines := strings.Split(log, "\n")
	for i, line := range lines {
		value, stack := panicAt(line, lines[i+1:])
		if value == "" {
			continue
		}
		where := value
		if len(stack) > 1 {
			where += stack[1] // file and line; the line before it contains addresses
		}
		if count[where]++; count[where] == 1 {
			order = append(order, where)
			text[where] = value + "\n\t" + strings.Join(stack, "\n\t")
		}
	}
	for i, where := range order {
		order[i] = fmt.Sprintf("the manager panicked (%d times at this place): %s", count[where], text[where])
	}
	return order
}

// panicAt returns the value and the stack of the panic that begins at a line, or "". If the
// stack is not in the line itself, it is in the following ones.
func panicAt(line string, following []string) (value string, stack []string) {
	_, fields, recovered := strings.Cut(line, observed)
	switch {
	case recovered:
		var parsed struct {
			Panic      any    `json:"panic"`
			Stacktrace string `json:"stacktrace"`
		}
		for _, text := range []string{fields, line} { // the fields of a console line, or a whole JSON line
			if begin := strings.Index(text, "{"); begin >= 0 && json.Unmarshal([]byte(text[begin:]), &parsed) == nil {
				return fmt.Sprint(parsed.Panic), raised(strings.Split(parsed.Stacktrace, "\n"))
			}
		}
		return strings.TrimSpace(line), raised(following)
	case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "), strings.Contains(line, "http: panic serving"):
		return line, raised(following)
	}
	return "", nil
}

// raised returns the part of a stack that begins where the panic was raised.
func raised(stack []string) []string {
	if i := slices.IndexFunc(stack, func(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "panic(") }); i >= 0 && i+2 < len(stack) {
		stack = stack[i+2:]
	} else if i := slices.IndexFunc(stack, func(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "goroutine ") }); i >= 0 {
		stack = stack[i+1:]
	}
	trimmed := make([]string, 0, stackLines)
	for _, line := range stack[:min(len(stack), stackLines)] {
		trimmed = append(trimmed, strings.TrimSpace(line))
	}
	return trimmed
}
