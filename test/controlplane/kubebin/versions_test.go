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

func TestVersions(t *testing.T) {
	root := repository(t)
	first, err := kubebin.Versions(root)
	if err != nil || len(first) != 1 {
		t.Fatalf("versions without other modules: %v, %v, want one", first, err)
	}
	for version, release := range map[string]string{"1.9": "v1.9.4", "1.10": "v1.10.2"} {
		dir := filepath.Join(root, "test", "kube", version)
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{"go.mod": "module x\n\nrequire k8s.io/kubernetes " + release + "\n", "go.sum": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := kubebin.Release(root, version); err != nil || got != release {
			t.Errorf("release of %s: %q, %v, want %q", version, got, err, release)
		}
	}
	got, err := kubebin.Versions(root)
	if want := append(first, "1.10", "1.9"); err != nil || !slices.Equal(got, want) {
		t.Errorf("versions %v, %v, want %v", got, err, want)
	}
	if _, err := kubebin.Release(root, "1.11"); !errors.Is(err, kubebin.ErrNoVersion) {
		t.Errorf("Release of a version without a module: %v, want ErrNoVersion", err)
	}

	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, err := kubebin.ControlPlane(root, "1.9"); !errors.Is(err, kubebin.ErrMissing) {
		t.Errorf("ControlPlane of a version that was not built: %v, want ErrMissing", err)
	}
}

// TestModulesPinTheirVersion checks that each module requires the version after which its directory
// is named, and replaces every staging module with the same release.
func TestModulesPinTheirVersion(t *testing.T) {
	root, err := kubebin.Root()
	if err != nil {
		t.Fatal(err)
	}
	versions, err := kubebin.Versions(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		release, err := kubebin.Release(root, version)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(release, "v"+version+".") {
			t.Errorf("module %s requires Kubernetes %s", version, release)
		}
		dir := filepath.Join(root, "test", "kube", version)
		if version == versions[0] {
			dir = filepath.Dir(dir)
		}
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		want, replaced := "v0."+strings.TrimPrefix(release, "v1."), 0
		for line := range strings.Lines(string(content)) {
			if f := strings.Fields(line); len(f) == 4 && f[1] == "=>" && strings.HasPrefix(f[0], "k8s.io/") {
				if replaced++; f[3] != want {
					t.Errorf("module %s replaces %s with %s, want %s", version, f[0], f[3], want)
				}
			}
		}
		if replaced == 0 {
			t.Errorf("module %s replaces no staging module", version)
		}
	}
}
