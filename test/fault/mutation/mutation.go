package mutation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// Edit replaces text that occurs exactly once in a file.
type Edit struct {
	// File is the file's path, relative to the repository's root.
	File string
	Old  string
	New  string
}

// Mutation describes a defect and how the harness finds it.
type Mutation struct {
	Name string
	// Class describes the known defect that the mutation re-creates.
	Class string
	Edits []Edit
	// Scenario and Fault reveal the defect. Fault is empty if none is needed. If the fault is not
	// reached, because the mutant makes other writes, the run may still reveal the defect.
	Scenario, Fault string
	// Check is the test in test/model that reveals the defect; empty means TestCheck.
	Check string
	// Full means that Check has a finding that Caught matches only without -short.
	Full bool
	// Caught lists invariants or, for test/model, regular expressions for findings. At least one of
	// them must be violated or match.
	Caught []string
}

// Apply returns the mutated content of each file, by its path relative to the root.
func (m Mutation) Apply(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range m.Edits {
		content, ok := files[e.File]
		if !ok {
			read, err := os.ReadFile(filepath.Join(root, e.File)) //nolint:gosec // our own source
			if err != nil {
				return nil, fmt.Errorf("mutation %s: %w", m.Name, err)
			}
			content = string(read)
		}
		if n := strings.Count(content, e.Old); n != 1 {
			return nil, fmt.Errorf("mutation %s: %s must contain this text once, but contains it %d times:\n%s", m.Name, e.File, n, e.Old)
		}
		files[e.File] = strings.Replace(content, e.Old, e.New, 1)
	}
	return files, nil
}

// Overlay writes the mutated files to a new directory in dir. It returns that directory and the
// path of the JSON file for `go build -overlay`.
func (m Mutation) Overlay(root, dir string) (made, list string, err error) {
	files, err := m.Apply(root)
	if err != nil {
		return "", "", err
	}
	if dir, err = os.MkdirTemp(dir, m.Name+"-"); err != nil {
		return "", "", fmt.Errorf("create a directory for mutation %s: %w", m.Name, err)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, content := range files {
		copied := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(copied, []byte(content), 0o600); err != nil {
			return "", "", fmt.Errorf("write mutation %s: %w", m.Name, err)
		}
		overlay.Replace[filepath.Join(root, file)] = copied
	}
	index, err := json.Marshal(overlay)
	if err != nil {
		return "", "", fmt.Errorf("write mutation %s: %w", m.Name, err)
	}
	list = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, index, 0o600); err != nil {
		return "", "", fmt.Errorf("write mutation %s: %w", m.Name, err)
	}
	return dir, list, nil
}

// Build builds the mutant's manager in dir and returns its path.
func (m Mutation) Build(ctx context.Context, root, dir string) (string, error) {
	dir, list, err := m.Overlay(root, dir)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "manager")
	if err := kubebin.GoBuild(ctx, root, binary, "./cmd/manager", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-overlay", list); err != nil {
		return "", fmt.Errorf("mutation %s: %w", m.Name, err)
	}
	return binary, nil
}
