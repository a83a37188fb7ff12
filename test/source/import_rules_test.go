package source

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestImportRulesCoverAllPackages prevents a new package from escaping the import rules in
// .golangci.yml.
func TestImportRulesCoverAllPackages(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct {
						Files []string `json:"files"`
					} `json:"rules"`
				} `json:"depguard"`
			} `json:"settings"`
		} `json:"linters"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	var covered []string
	named := regexp.MustCompile(`^\*\*/internal/\{?([a-z,]+)\}?/\*\*$`)
	for _, rule := range config.Linters.Settings.Depguard.Rules {
		for _, pattern := range rule.Files {
			if match := named.FindStringSubmatch(pattern); match != nil {
				covered = append(covered, strings.Split(match[1], ",")...)
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, "internal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() && hasGo(filepath.Join(root, "internal", entry.Name())) && !slices.Contains(covered, entry.Name()) {
			t.Errorf("no import rule of .golangci.yml covers internal/%s: add it to one", entry.Name())
		}
	}
	for _, name := range covered {
		if info, err := os.Stat(filepath.Join(root, "internal", name)); err != nil || !info.IsDir() {
			t.Errorf(".golangci.yml has an import rule for internal/%s, which does not exist", name)
		}
	}
}

// hasGo reports whether a directory or one of its subdirectories is a Go package. A directory that
// contains only Markdown pages is not.
func hasGo(dir string) bool {
	for _, pattern := range []string{"*.go", "*/*.go"} {
		if found, err := filepath.Glob(filepath.Join(dir, pattern)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}
