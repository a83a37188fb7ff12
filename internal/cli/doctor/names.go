package doctor

import (
	"fmt"
	"strings"

	"github.com/xylem-io/xylem/internal/text"
)

// namedMost is the maximum number of names in a message.
const namedMost = 5

// Named enumerates objects: `PersistentVolumes "a", "b" and 3 more`.
func Named(kind string, names []string) string {
	plural := strings.TrimPrefix(text.Count(len(names), kind), fmt.Sprint(len(names))+" ")
	if more := len(names) - namedMost; more > 0 {
		return fmt.Sprintf("%s %s and %d more", plural, text.Quoted(names[:namedMost]...), more)
	}
	return plural + " " + text.Quoted(names...)
}

// First joins the first few names, and counts the rest.
func First(all []string) string {
	if more := len(all) - namedMost; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:namedMost], ", "), more)
	}
	return strings.Join(all, ", ")
}
