package result

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/xylem-io/xylem/internal/text"
)

// Named enumerates objects: `PersistentVolumes "a", "b", and 3 more`.
func Named(kind string, names []string) string {
	plural := strings.TrimPrefix(text.Count(len(names), kind), fmt.Sprint(len(names))+" ")
	quoted := make([]string, 0, len(names))
	for _, name := range names {
		quoted = append(quoted, strconv.Quote(name))
	}
	return plural + " " + First(quoted)
}

// First joins the first few names, and counts the rest.
func First(all []string) string {
	return text.FirstNames(all, text.NamesListed, ", ")
}
