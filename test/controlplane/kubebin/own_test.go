package kubebin_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// tinyManager creates a repository with a tiny manager, and an empty cache for programs. Go's own
// caches stay the same.
func tinyManager(t *testing.T) (root string) {
	t.Helper()
	goCache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root = t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module tiny\n", "go.sum": "", "cmd/manager/main.go": "package main\n\nfunc main() {}\n",
		"api/api.go": "package api\n", "config/crd.yaml": "{}\n", "internal/internal.go": "package internal\n",
	} {
		write(t, filepath.Join(root, name), content)
	}
	return root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// manager returns the path of the manager, and whether it was built.
func manager(ctx context.Context, t *testing.T, root string) (path string, built bool) {
	t.Helper()
	path, err := kubebin.Manager(ctx, root, func(format string, _ ...any) { built = built || strings.Contains(format, "built in") })
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(ctx, path).Run(); err != nil {
		t.Fatalf("run %s: %v", path, err)
	}
	return path, built
}

func TestManagerIsBuiltOnceForItsSources(t *testing.T) {
	root := tinyManager(t)
	first, built := manager(t.Context(), t, root)
	if !built {
		t.Error("the manager was not built")
	}
	write(t, filepath.Join(root, "internal", "internal_test.go"), "package internal\n")
	if again, built := manager(t.Context(), t, root); built || again != first {
		t.Errorf("the manager was built again as %s, want %s: its sources have not changed", again, first)
	}
	seen := map[string]bool{first: true}
	for _, source := range []string{"go.mod", "go.sum", "cmd/manager/main.go", "api/api.go", "internal/internal.go"} {
		content, err := os.ReadFile(filepath.Join(root, source))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, source), string(content)+"\n")
		path, built := manager(t.Context(), t, root)
		if !built || seen[path] {
			t.Errorf("after a change of %s, the manager is %s, want a new one", source, path)
		}
		seen[path] = true
	}
	write(t, filepath.Join(root, "config", "crd.yaml"), "[]\n")
	if path, _ := manager(t.Context(), t, root); seen[path] {
		t.Error("after a change of an embedded file, the manager is the same")
	}
}

func TestConcurrentBuildsShareTheManager(t *testing.T) {
	root := tinyManager(t)
	var group errgroup.Group
	var builds atomic.Int32
	for range 4 {
		group.Go(func() error {
			_, err := kubebin.Manager(t.Context(), root, func(format string, _ ...any) {
				if strings.Contains(format, "built in") {
					builds.Add(1)
				}
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := builds.Load(); n != 1 {
		t.Errorf("%d builds, want 1", n)
	}
}

func TestUnusedManagersAreRemoved(t *testing.T) {
	root := tinyManager(t)
	old, _ := manager(t.Context(), t, root)
	write(t, filepath.Join(root, "go.sum"), "\n")
	used, _ := manager(t.Context(), t, root)
	long := time.Now().Add(-30 * 24 * time.Hour)
	for _, path := range []string{old, used} {
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	manager(t.Context(), t, root)
	write(t, filepath.Join(root, "go.sum"), "\n\n")
	manager(t.Context(), t, root)
	if _, err := os.Stat(filepath.Dir(old)); !os.IsNotExist(err) {
		t.Errorf("the unused %s still exists: %v", old, err)
	}
	if _, err := os.Stat(used); err != nil {
		t.Errorf("the manager that was in use was removed: %v", err)
	}
}

// TestSourcesOfOwnPrograms checks that the names of the manager and of the CSI driver depend on all
// their packages.
func TestSourcesOfOwnPrograms(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	for pkg, sources := range kubebin.OwnSources() {
		command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}`, "./"+pkg)
		command.Dir = root
		out, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		for dependency := range strings.FieldsSeq(string(out)) {
			_, dir, _ := strings.Cut(dependency, "github.com/xylem-io/xylem/")
			hashed := false
			for _, source := range sources {
				hashed = hashed || dir == source || strings.HasPrefix(dir, source+"/")
			}
			if !hashed {
				t.Errorf("%s depends on %s, but its name in the cache does not", pkg, dependency)
			}
		}
	}
}
