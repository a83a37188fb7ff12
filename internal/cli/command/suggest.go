package command

import (
	"fmt"

	"github.com/xylem-io/xylem/internal/wording"
)

// DidYouMean returns a sentence with the known word that is most similar to word, preceded by a
// space, or "" if none is similar.
func DidYouMean(word string, known []string) string {
	if nearest := wording.NearestWord(word, known); nearest != "" {
		return fmt.Sprintf(" Did you mean %q?", nearest)
	}
	return ""
}
