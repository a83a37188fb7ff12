package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Index joins images for several platforms into one OCI index. It reads each image's platform from
// its configuration. It returns an error if two images have the same platform.
func Index(images ...v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	seen := map[string]bool{}
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("read an image's configuration: %w", err)
		}
		platform := config.Platform()
		if seen[platform.String()] {
			return nil, fmt.Errorf("two images have platform %q: pass one image for each platform", platform)
		}
		seen[platform.String()] = true
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	if len(seen) == 0 {
		return nil, errors.New("no images for the index")
	}
	return index, nil
}

// SaveIndex writes an index to a directory in the OCI image layout. It replaces an existing
// directory. Skopeo, crane and oras can copy the index to a registry.
func SaveIndex(to string, index v1.ImageIndex) error {
	tmp, err := os.MkdirTemp(filepath.Dir(to), "."+filepath.Base(to)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // Gone already if all went well.
	root, err := layout.Write(tmp, empty.Index)
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	if err := root.AppendIndex(index); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	if err := errors.Join(os.RemoveAll(to), os.Chmod(tmp, 0o755)); err != nil { //nolint:gosec // To be read by all, as any release.
		return fmt.Errorf("write %s: %w", to, err)
	}
	return os.Rename(tmp, to)
}
