// Package coverage reads the table of the stories in `make test` that show each capability and invariant.
package coverage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Page has the table.
const Page = ".github/CONTRIBUTING.md"

// head is the first line of the table.
const head = "| what `make test` shows | story | suite |"

// Row is a row of the table: a capability or invariant, a part of the text of a story that shows it, and
// the directory of the story's suite.
type Row struct{ What, Story, Suite string }

// Read reads the table in the repository at root.
func Read(root string) ([]Row, error) {
	page, err := os.ReadFile(filepath.Join(root, Page)) //nolint:gosec // our own
	if err != nil {
		return nil, fmt.Errorf("read the table of stories: %w", err)
	}
	_, table, found := strings.Cut(string(page), head+"\n")
	if !found {
		return nil, fmt.Errorf("%s has no table %q", Page, head)
	}
	var rows []Row
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(line, "|")
		if len(cells) == 1 {
			break
		}
		if len(cells) != 5 {
			return nil, fmt.Errorf("%s: %q does not have three cells", Page, line)
		}
		rows = append(rows, Row{What: strings.TrimSpace(cells[1]), Story: strings.TrimSpace(cells[2]), Suite: strings.Trim(cells[3], " `")})
	}
	return rows, nil
}
