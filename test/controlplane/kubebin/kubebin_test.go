package kubebin_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// repository copies the files that determine the cache directory's name to a new root.
func repository(t *testing.T) string {
	t.Helper()
	own, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "test", "kube"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(own, "test", "kube", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "test", "kube", name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func dir(t *testing.T, root string) string {
	t.Helper()
	d, err := kubebin.Dir(root)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDirDependsOnTheModule(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root := repository(t)
	before := dir(t, root)
	if again := dir(t, repository(t)); again != before {
		t.Errorf("directory of another clone is %s, want %s", again, before)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		path := filepath.Join(root, "test", "kube", name)
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("\n// changed\n"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		after := dir(t, root)
		if after == before {
			t.Errorf("after a change to %s, the directory is still %s, want a different one", name, after)
		}
		before = after
	}
}

func TestCheckNamesMissingPrograms(t *testing.T) {
	d := t.TempDir()
	if err := kubebin.Check(d, kubebin.Core()); !errors.Is(err, kubebin.ErrMissing) {
		t.Errorf("empty directory: %v, want ErrMissing", err)
	}
	for _, name := range kubebin.Core() {
		if err := os.WriteFile(filepath.Join(d, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := kubebin.Check(d, kubebin.Core()); err != nil {
		t.Errorf("directory with the core: %v, want no error", err)
	}
	err := kubebin.Check(d, kubebin.All())
	if !errors.Is(err, kubebin.ErrMissing) {
		t.Fatalf("directory without the extras: %v, want ErrMissing", err)
	}
	for _, name := range kubebin.All() {
		if missing := !slices.Contains(kubebin.Core(), name); missing != strings.Contains(err.Error(), name) {
			t.Errorf("%s is missing: %t, but the error is %v", name, missing, err)
		}
	}
}

func TestSnapshotCRDs(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := kubebin.SnapshotCRDs(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), "kind: CustomResourceDefinition") {
			t.Errorf("%s is not a CustomResourceDefinition", file)
		}
	}
	if len(files) != 3 {
		t.Errorf("%d files, want 3", len(files))
	}
}

func TestRootFromEnvironment(t *testing.T) {
	t.Setenv(kubebin.RootEnv, "somewhere")
	if got, err := kubebin.Root(); err != nil || got != "somewhere" {
		t.Errorf("root = %q, %v, want the directory in %s", got, err, kubebin.RootEnv)
	}
}
