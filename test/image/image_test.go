package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// pack packs files in the given order.
func pack(t *testing.T, files ...File) v1.Image {
	t.Helper()
	scratch, err := Scratch("linux", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	image, err := Build(scratch, files, func(c *v1.Config) { c.User = "65532:65532" })
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func digest(t *testing.T, image v1.Image) string {
	t.Helper()
	d, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

func TestSameFilesSameDigest(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := File{Path: "/usr/bin/program", Mode: 0o755, From: source}
	licence := File{Path: "/LICENSE", Mode: 0o644, Content: []byte("Apache")}
	first := digest(t, pack(t, program, licence))

	// The digest does not depend on the file's time, its local mode, or the order of the files.
	if err := os.Chtimes(source, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(source, 0o700); err != nil {
		t.Fatal(err)
	}
	if second := digest(t, pack(t, licence, program)); second != first {
		t.Errorf("the same files result in two digests: %s and %s", first, second)
	}
	licence.Content = []byte("MIT")
	if other := digest(t, pack(t, program, licence)); other == first {
		t.Error("different files result in the same digest")
	}
}

func TestLayer(t *testing.T) {
	image := pack(t,
		File{Path: "/usr/bin/program", Mode: 0o755, Content: []byte("12345")},
		File{Path: "/bin", Link: "usr/bin"},
		File{Path: "/tmp", Mode: 0o1777, Dir: true},
	)
	var found []string
	layers := mutate.Extract(image)
	defer layers.Close() //nolint:errcheck // Only read.
	for archive := tar.NewReader(layers); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.ModTime.Unix() != 0 {
			t.Errorf("%s has owner %d:%d and time %s, want 0:0 and the Unix epoch", header.Name, header.Uid, header.Gid, header.ModTime)
		}
		found = append(found, strings.TrimSpace(header.FileInfo().Mode().String()+" "+header.Name+" "+header.Linkname))
	}
	want := []string{"Lrwxrwxrwx bin usr/bin", "dtrwxrwxrwx tmp", "drwxr-xr-x usr", "drwxr-xr-x usr/bin", "-rwxr-xr-x usr/bin/program"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
}

func TestPathsAreChecked(t *testing.T) {
	for _, path := range []string{"program", "/usr/../program", "", "/usr/"} {
		scratch, err := Scratch("linux", "amd64")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Build(scratch, []File{{Path: path}}, func(*v1.Config) {}); err == nil {
			t.Errorf("Build accepted a file at %q", path)
		}
	}
}

func TestSave(t *testing.T) {
	image, to := pack(t, File{Path: "/a", Content: []byte("a")}), filepath.Join(t.TempDir(), "image.tar")
	if err := Save(to, map[string]v1.Image{"xylem:test": image}); err != nil {
		t.Fatal(err)
	}
	loaded, err := tarball.ImageFromPath(to, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := loaded.ConfigName(); err != nil || got != want {
		t.Errorf("the loaded image has config %s and error %v, want config %s", got, err, want)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(to), "*")); err != nil || len(left) != 1 {
		t.Errorf("the directory contains %s (error %v), want only the archive", left, err)
	}
	if err := Save(to, map[string]v1.Image{"Not A Name": image}); err == nil {
		t.Error("Save accepted an invalid name")
	}
}
