package command

import (
	"fmt"

	"github.com/xylem-io/xylem/internal/text"
)

// DidYouMean is a sentence that names the known word that was probably meant, after a blank;
// empty if none is near.
func DidYouMean(word string, known []string) string {
	if nearest := text.Nearest(word, known); nearest != "" {
		return fmt.Sprintf(" Did you mean %q?", nearest)
	}
	return ""
}
