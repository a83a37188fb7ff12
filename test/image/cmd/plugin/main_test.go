package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const base = "https://example.com/releases"

// binaries writes the files that run requires. It returns the directory with the binaries, an empty
// output directory, and the license file.
func binaries(t *testing.T) (from, to, licence string) {
	t.Helper()
	from, to = t.TempDir(), t.TempDir()
	licence = filepath.Join(t.TempDir(), "LICENSE")
	for path, content := range map[string]string{
		filepath.Join(from, "linux-arm64", "kubectl-xylem"):       "for linux",
		filepath.Join(from, "windows-amd64", "kubectl-xylem.exe"): "for windows",
		licence: "the license",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return from, to, licence
}

func TestRun(t *testing.T) {
	from, to, licence := binaries(t)
	if err := run(from, to, licence, "v1.2.3", base); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(to, "xylem.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Version   string     `json:"version"`
			Platforms []platform `json:"platforms"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]string{
		"linux/arm64":   {"kubectl-xylem": "for linux", "LICENSE": "the license"},
		"windows/amd64": {"kubectl-xylem.exe": "for windows", "LICENSE": "the license"},
	}
	got := map[string]map[string]string{}
	for _, p := range manifest.Spec.Platforms {
		name, ok := strings.CutPrefix(p.URI, base+"/v1.2.3/")
		if !ok {
			t.Errorf("URI %s does not belong to this release", p.URI)
		}
		path := filepath.Join(to, name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(content)); sum != p.SHA256 {
			t.Errorf("%s has checksum %s, but the manifest has %s", name, sum, p.SHA256)
		}
		got[p.Selector.MatchLabels["os"]+"/"+p.Selector.MatchLabels["arch"]] = unpack(t, path)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRunIsReproducible(t *testing.T) {
	from, to, licence := binaries(t)
	var before []byte
	for range 2 {
		if err := run(from, to, licence, "v1.2.3", base); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(filepath.Join(to, "xylem.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && string(before) != string(after) {
			t.Errorf("the same binaries resulted in different archives:\n%s\n%s", before, after)
		}
		before = after
	}
}

func TestRunRejects(t *testing.T) {
	from, to, licence := binaries(t)
	if err := run(from, to, licence, "", base); err == nil {
		t.Error("a missing version was accepted")
	}
	if err := run(t.TempDir(), to, licence, "v1.2.3", base); err == nil {
		t.Error("missing binaries were accepted")
	}
}

// unpack returns an archive's files.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if filepath.Ext(path) == ".zip" {
		archive, err := zip.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close() //nolint:errcheck // Only read.
		for _, f := range archive.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			files[f.Name] = read(t, r)
		}
		return files
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // Only read.
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(z)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = read(t, archive)
	}
}

func read(t *testing.T, r io.Reader) string {
	t.Helper()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
