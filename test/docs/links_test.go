package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

var (
	// link matches a link or an image in Markdown or HTML.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"`)
	// heading matches a Markdown heading.
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	// dropped are the characters that GitHub removes from a heading's anchor.
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	// code matches a code block, whose content contains no links or headings.
	code = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// TestLinks checks that each link to a file in the repository, or to a heading on a page, has a
// target.
func TestLinks(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := markdown(root)
	if err != nil {
		t.Fatal(err)
	}
	for page, content := range pages {
		for _, match := range link.FindAllStringSubmatch(content, -1) {
			target := match[1] + match[2]
			if strings.Contains(target, "://") {
				continue
			}
			path, anchor, _ := strings.Cut(target, "#")
			file := page
			if path != "" {
				file = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s: the target of link %s does not exist", page, target)
				continue
			}
			if to, isPage := pages[file]; isPage && anchor != "" && !anchors(to)[anchor] {
				t.Errorf("%s: the heading in link %s does not exist in %s", page, target, file)
			}
		}
	}
}

// TestAnchors checks that anchors are computed as GitHub does.
func TestAnchors(t *testing.T) {
	got := anchors("# To change X, edit Y\n## What's `in` it?\n")
	for _, want := range []string{"to-change-x-edit-y", "whats-in-it"} {
		if !got[want] {
			t.Errorf("no anchor %s in %v", want, got)
		}
	}
}

// markdown returns the pages below a directory, without their code blocks.
func markdown(root string) (map[string]string, error) {
	pages := map[string]string{}
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "dist"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		content, err := fs.ReadFile(tree, path)
		pages[path] = code.ReplaceAllString(string(content), "")
		return err
	})
	return pages, err
}

// anchors returns the anchors that GitHub creates for a page's headings.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		text := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(match[1])), "")
		all[strings.ReplaceAll(text, " ", "-")] = true
	}
	return all
}
