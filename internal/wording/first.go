package wording

import (
	"fmt"
	"slices"
	"strings"
)

// NamesListed is the usual maximum for FirstNames. The note of an event is limited to 1 KiB.
const NamesListed = 5

// FirstNames joins at most the given number of names, and counts the others: "a, b, and 3 more".
func FirstNames(names []string, most int, separator string) string {
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, separator)
}

// FirstNamesUncounted joins at most the given number of names, and appends "…" if there are others: for lists
// whose length is unknown, or changes more often than the message should.
func FirstNamesUncounted(names []string, most int, separator string) string {
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "…")
	}
	return strings.Join(names, separator)
}
