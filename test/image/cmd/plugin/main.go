// Command plugin packs the kubectl plugin for a release: an archive for each platform, and the
// manifest for krew. The same binaries always result in the same archives.
//
// It expects the binaries as DIR/<os>-<arch>/kubectl-xylem, with .exe on Windows.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const binary = "kubectl-xylem"

func main() {
	from := flag.String("from", "bin/plugin", "Directory of the binaries.")
	to := flag.String("to", "dist/release", "Directory to write to.")
	licence := flag.String("licence", "LICENSE", "License to include.")
	version := flag.String("version", "", "Version of the release, such as v0.1.0.")
	base := flag.String("base-url", "https://github.com/xylem-io/xylem/releases/download", "Base URL of the releases.")
	flag.Parse()
	if err := run(*from, *to, *licence, *version, *base); err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
	}
}

func run(from, to, licence, version, base string) error {
	if !strings.HasPrefix(version, "v") {
		return fmt.Errorf("%q is not a version: set --version, such as v0.1.0", version)
	}
	text, err := os.ReadFile(licence) //nolint:gosec // Named on the command line.
	if err != nil {
		return fmt.Errorf("read the license: %w", err)
	}
	directories, err := filepath.Glob(filepath.Join(from, "*-*"))
	if err != nil {
		return err
	}
	if len(directories) == 0 {
		return fmt.Errorf("no binaries in %s: run make plugin", from)
	}
	slices.Sort(directories)
	var platforms []platform
	for _, dir := range directories {
		system, arch, _ := strings.Cut(filepath.Base(dir), "-")
		p, err := pack(dir, to, system, arch, text)
		if err != nil {
			return fmt.Errorf("pack the plugin for %s/%s: %w", system, arch, err)
		}
		p.URI = base + "/" + version + "/" + p.URI
		platforms = append(platforms, p)
	}
	manifest, err := yaml.Marshal(krew(version, platforms))
	if err != nil {
		return fmt.Errorf("write krew's manifest: %w", err)
	}
	return os.WriteFile(filepath.Join(to, "xylem.yaml"), manifest, 0o644) //nolint:gosec // To be published.
}

// platform is one entry of krew's manifest.
type platform struct {
	Selector selector `json:"selector"`
	URI      string   `json:"uri"`
	SHA256   string   `json:"sha256"`
	Bin      string   `json:"bin"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// krew returns the manifest of the plugin (krew.googlecontainertools.github.com/v1alpha2).
func krew(version string, platforms []platform) any {
	return map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]string{"name": "xylem"},
		"spec": map[string]any{
			"version":          version,
			"homepage":         "https://github.com/xylem-io/xylem",
			"shortDescription": "Register member clusters and find claims' volumes",
			"description": "Registers and deregisters Xylem's member clusters. For a claim or a Pod, it shows\n" +
				"the volume, the member, and every condition and event that explains why it waits.\n",
			"platforms": platforms,
		},
	}
}

// pack writes the archive for one platform. The returned URI is the archive's file name.
func pack(dir, to, system, arch string, licence []byte) (platform, error) {
	name, extension, archive := binary, ".tar.gz", tarGz
	if system == "windows" {
		name, extension, archive = binary+".exe", ".zip", zipped
	}
	program, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // Named on the command line.
	if err != nil {
		return platform{}, err
	}
	content, err := archive([]file{{name, 0o755, program}, {"LICENSE", 0o644, licence}})
	if err != nil {
		return platform{}, err
	}
	p := platform{
		Selector: selector{MatchLabels: map[string]string{"os": system, "arch": arch}},
		URI:      fmt.Sprintf("%s_%s_%s%s", binary, system, arch, extension),
		SHA256:   fmt.Sprintf("%x", sha256.Sum256(content)),
		Bin:      name,
	}
	return p, os.WriteFile(filepath.Join(to, p.URI), content, 0o644) //nolint:gosec // To be published.
}

// file is one entry of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

func tarGz(files []file) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), compressed.Close())
	return out.Bytes(), err
}

// beginning is the earliest time that a zip archive can contain.
var beginning = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

func zipped(files []file) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: beginning}
		header.SetMode(os.FileMode(f.mode)) //nolint:gosec // Permissions.
		w, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}
