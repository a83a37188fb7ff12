package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Markers around the table of values in README.md.
const (
	tableBegin = "<!-- Generated from values.yaml by `make charts`. -->\n"
	tableEnd   = "<!-- End of generated content. -->\n"
)

// readme returns the chart's README.md with the current table of values.
func readme(directory string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(directory, "README.md")) //nolint:gosec // part of the repository
	if err != nil {
		return nil, err
	}
	before, rest, ok := bytes.Cut(content, []byte(tableBegin))
	_, after, closed := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !closed {
		return nil, fmt.Errorf("the markers of the table are missing: %q and %q", tableBegin, tableEnd)
	}
	described, err := values(directory)
	if err != nil {
		return nil, err
	}
	var table strings.Builder
	table.WriteString("\n| value | default | |\n|---|---|---|\n")
	for _, v := range described {
		if !v.leaf {
			continue
		}
		inline, err := v.inline()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v.name(), inline, strings.ReplaceAll(v.description, "|", `\|`))
	}
	table.WriteString("\n")
	return bytes.Join([][]byte{before, []byte(tableBegin), []byte(table.String()), []byte(tableEnd), after}, nil), nil
}
