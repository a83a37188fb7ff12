package coverage

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// promises finds what the documentation promises: the text that the first group matches on each page.
var promises = map[string]*regexp.Regexp{
	// The invariants.
	"internal/README.md": regexp.MustCompile(`(?m)^\| \*\*(I\d [a-z ]+)\*\* \|`),
	// The tasks.
	"config/samples/README.md": regexp.MustCompile(`(?m)^\| \[([^\]]+)\]\(#`),
	// The plugin's commands.
	"README.md": regexp.MustCompile("(kubectl xylem [a-z]+)"),
}

// kubectlCommands finds the sentence about kubectl's own commands in README.md.
var kubectlCommands = regexp.MustCompile("(?m)^(`kubectl logs`.*) work if")

// TestTableIsComplete requires a story in `make test` for everything that the documentation promises. The
// suites compare the table with their stories.
func TestTableIsComplete(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for page, pattern := range promises {
		found := pattern.FindAllStringSubmatch(read(t, root, page), -1)
		if len(found) == 0 {
			t.Errorf("%s does not match %s", page, pattern)
		}
		for _, match := range found {
			want = append(want, match[1])
		}
	}
	sentence := kubectlCommands.FindStringSubmatch(read(t, root, "README.md"))
	if sentence == nil {
		t.Fatalf("README.md does not match %s", kubectlCommands)
	}
	for _, command := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(sentence[1], -1) {
		want = append(want, "kubectl "+strings.TrimPrefix(command[1], "kubectl "))
	}
	for _, what := range slices.Compact(slices.Sorted(slices.Values(want))) {
		if !slices.ContainsFunc(rows, func(row Row) bool { return row.What == what }) {
			t.Errorf("%s: no story in make test shows %q", Page, what)
		}
	}
}

func read(t *testing.T, root, page string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		page string
		want []Row
		err  string
	}{
		"a table":              {page: "text\n\n" + head + "\n|---|---|---|\n| I1 | destroys the disk | `stories` |\n\nmore", want: []Row{{"I1", "destroys the disk", "stories"}}},
		"no table":             {page: "text", err: "has no table"},
		"a row without a cell": {page: head + "\n|---|---|---|\n| I1 | `stories` |\n", err: "does not have three cells"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, Page)), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, Page), []byte(tc.page), 0o600); err != nil {
				t.Fatal(err)
			}
			rows, err := Read(root)
			if !slices.Equal(rows, tc.want) || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("Read() = %v, %v, want %v, %q", rows, err, tc.want, tc.err)
			}
		})
	}
}
