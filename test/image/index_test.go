package image

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

func scratch(t *testing.T, arch string) v1.Image {
	t.Helper()
	image, err := Scratch("linux", arch)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestIndex(t *testing.T) {
	index, err := Index(scratch(t, "amd64"), scratch(t, "arm64"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "index")
	for range 2 { // The second call replaces the first one's directory.
		if err := SaveIndex(to, index); err != nil {
			t.Fatal(err)
		}
	}
	root, err := layout.ImageIndexFromPath(to)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := root.ImageIndex(want)
	if err != nil {
		t.Fatalf("the layout lacks the index: %v", err)
	}
	manifest, err := saved.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	platforms := []string{}
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestIndexRejects(t *testing.T) {
	if _, err := Index(); err == nil {
		t.Error("Index accepted no images")
	}
	if _, err := Index(scratch(t, "amd64"), scratch(t, "amd64")); err == nil {
		t.Error("Index accepted two images with the same platform")
	}
}
