package text

import (
	"strconv"
	"strings"
)

// Quoted returns the names in quotes, separated by commas.
func Quoted(names ...string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, ", ")
}
