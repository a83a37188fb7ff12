package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// File is one entry in a layer. For a file or a link, set one of From, Content and Link.
type File struct {
	// Path is absolute.
	Path string
	// Mode is the file mode, which may include the sticky bit.
	Mode int64
	// From is the path of a local file to copy.
	From string
	// Content is the file's content.
	Content []byte
	// Link makes the entry a symbolic link with this target.
	Link string
	// Dir makes the entry a directory.
	Dir bool
}

// Scratch returns an empty image for one platform.
func Scratch(os, arch string) (v1.Image, error) {
	config, err := empty.Image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the empty image: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = os, arch
	image, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		return nil, fmt.Errorf("create the empty image for %s/%s: %w", os, arch, err)
	}
	return image, nil
}

// Build adds a layer with the files to base, and changes the configuration. In the layer, root
// owns all files, and all times are zero.
func Build(base v1.Image, files []File, configure func(*v1.Config)) (v1.Image, error) {
	archive, err := layer(files)
	if err != nil {
		return nil, err
	}
	added, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil })
	if err != nil {
		return nil, fmt.Errorf("pack a layer: %w", err)
	}
	// Omit the time from the history entry, because it would change the digest.
	image, err := mutate.Append(base, mutate.Addendum{Layer: added, History: v1.History{CreatedBy: "xylem test/image"}})
	if err != nil {
		return nil, fmt.Errorf("add a layer: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	config := file.Config.DeepCopy()
	configure(config)
	if image, err = mutate.Config(image, *config); err != nil {
		return nil, fmt.Errorf("configure the image: %w", err)
	}
	return image, nil
}

// Save writes images to an archive that docker, podman, ctr and kind can load. The order of
// images in the archive is not specified.
func Save(to string, images map[string]v1.Image) (err error) {
	out, err := os.CreateTemp(path.Dir(to), "."+path.Base(to)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	defer func() { err = errors.Join(err, ignoreAbsent(os.Remove(out.Name()))) }()
	if err := errors.Join(Write(out, images), out.Chmod(0o644), out.Close()); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	if err := os.Rename(out.Name(), to); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	return nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Write writes the same archive as Save to out.
func Write(out io.Writer, images map[string]v1.Image) error {
	tags := make(map[name.Reference]v1.Image, len(images))
	for tag, image := range images {
		reference, err := name.NewTag(tag)
		if err != nil {
			return fmt.Errorf("%q is not an image name: %w", tag, err)
		}
		tags[reference] = image
	}
	if err := tarball.MultiRefWrite(tags, out); err != nil {
		return fmt.Errorf("pack images: %w", err)
	}
	return nil
}

// layer returns an archive of the files and all their parent directories, sorted by path.
func layer(files []File) ([]byte, error) {
	entries := map[string]File{}
	for _, f := range files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path {
			return nil, fmt.Errorf("pack %q: not an absolute, clean path", f.Path)
		}
		entries[f.Path] = f
		for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
			if _, named := entries[dir]; !named {
				entries[dir] = File{Path: dir, Mode: 0o755, Dir: true}
			}
		}
	}
	sorted := make([]File, 0, len(entries))
	for _, f := range entries {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })

	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, f := range sorted {
		if err := write(archive, f); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("pack a layer: %w", err)
	}
	return buffer.Bytes(), nil
}

func write(archive *tar.Writer, f File) error {
	header := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: f.Mode, Format: tar.FormatPAX}
	content := f.Content
	switch {
	case f.Dir:
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case f.From != "":
		read, err := os.ReadFile(f.From)
		if err != nil {
			return err
		}
		header.Typeflag, content = tar.TypeReg, read
	case f.Link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, f.Link, 0o777
	default:
		header.Typeflag = tar.TypeReg
	}
	header.Size = int64(len(content))
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}
