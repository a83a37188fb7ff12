package wording

import (
	"strconv"
	"strings"
)

// QuotedNames returns the names in quotes, separated by commas.
func QuotedNames(names ...string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, ", ")
}
