package docs

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Block is one block of commands on a page.
type Block struct {
	// Page is the file's path from the repository's root. Line is the first line of the block.
	Page string
	Line int
	// Commands are the lines in the block.
	Commands string
	// NotRun is the reason why the test does not run the block, or "".
	NotRun string
}

func (b Block) String() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

var (
	fence  = regexp.MustCompile("^ *(```+) *([a-z]*)")
	notRun = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
	// shells are the languages of command blocks.
	shells = []string{"sh", "bash", "shell", "console"}
)

// Blocks returns the command blocks on a page.
func Blocks(page, content string) ([]Block, error) {
	var (
		all    []Block
		open   string // the fence that ends the current block
		reason string
		block  *Block
		number int
	)
	lines := bufio.NewScanner(strings.NewReader(content))
	for lines.Scan() {
		number++
		line := lines.Text()
		match := fence.FindStringSubmatch(line)
		switch {
		case open != "" && strings.TrimSpace(line) == open:
			if block != nil {
				all = append(all, *block)
			}
			open, block = "", nil
		case open != "":
			if block != nil {
				block.Commands += line + "\n"
			}
		case match != nil:
			open = match[1]
			if slices.Contains(shells, match[2]) {
				block = &Block{Page: page, Line: number, NotRun: reason}
			}
			reason = ""
		default:
			if m := notRun.FindStringSubmatch(line); m != nil {
				reason = m[1]
			} else if strings.TrimSpace(line) != "" {
				reason = ""
			}
		}
	}
	if open != "" {
		return nil, fmt.Errorf("%s: a code block is not closed", page)
	}
	return all, lines.Err()
}

// Pages returns the blocks of all Markdown files below a directory, by file. It skips the
// directories .git, bin and dist.
func Pages(root string) (map[string][]Block, error) {
	pages := map[string][]Block{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "dist"}, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // a page of the repository
		if err != nil {
			return err
		}
		blocks, err := Blocks(filepath.ToSlash(name), string(content))
		if len(blocks) > 0 {
			pages[filepath.ToSlash(name)] = blocks
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the pages of %s: %w", root, err)
	}
	return pages, nil
}

// Script returns a script that runs the blocks in one shell, and prints the position of each.
// It ends at the first command that fails.
func Script(blocks []Block) string {
	var out strings.Builder
	out.WriteString("set -euo pipefail\n")
	for _, b := range blocks {
		if b.NotRun == "" {
			fmt.Fprintf(&out, "echo '### %s'\n%s", b, b.Commands)
		}
	}
	return out.String()
}
