// Command image packs the manager's image: the static binary and the license, on an empty image or
// a base image. It does not need a container engine or, without a base image, a registry. It prints
// the digest. The same binary always results in the same digest.
package main

import (
	"context"
	"debug/elf"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/xylem-io/xylem/test/image"
)

// scratch is the name of an empty base image, as in a Dockerfile.
const scratch = "scratch"

// nonRoot is the user that the manager runs as. It is numeric, so that a cluster can verify that
// it is not root.
const nonRoot = "65532:65532"

type options struct {
	binary, licence, tag, base, arch, to string
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/manager", "static binary for Linux")
	flag.StringVar(&o.licence, "licence", "LICENSE", "license to include")
	flag.StringVar(&o.tag, "tag", "xylem:dev", "name and tag of the image")
	flag.StringVar(&o.base, "base", scratch, "base image, which is pulled from its registry; name it by digest for reproducible results")
	flag.StringVar(&o.arch, "arch", "amd64", "architecture of the binary")
	flag.StringVar(&o.to, "to", "dist/image.tar", "archive to write, for docker load, kind load image-archive or crane push")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if err := static(o.binary); err != nil {
		return err
	}
	base, err := baseImage(ctx, o)
	if err != nil {
		return err
	}
	packed, err := image.Build(base, []image.File{
		{Path: "/manager", Mode: 0o755, From: o.binary},
		{Path: "/LICENSE", Mode: 0o644, From: o.licence},
	}, func(c *v1.Config) {
		c.User, c.Entrypoint, c.Cmd, c.WorkingDir = nonRoot, []string{"/manager"}, nil, "/"
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels["org.opencontainers.image.title"] = "xylem"
		c.Labels["org.opencontainers.image.licenses"] = "Apache-2.0"
	})
	if err != nil {
		return err
	}
	if err := image.Save(o.to, map[string]v1.Image{o.tag: packed}); err != nil {
		return err
	}
	digest, err := packed.Digest()
	if err != nil {
		return fmt.Errorf("read the image's digest: %w", err)
	}
	id, err := packed.ConfigName()
	if err != nil {
		return fmt.Errorf("read the image's ID: %w", err)
	}
	info, err := os.Stat(o.to)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	fmt.Printf("image:  %s, linux/%s, on %s\ndigest: %s\nID:     %s\nfile:   %s, %.1f MB\n",
		o.tag, o.arch, o.base, digest, id, o.to, float64(info.Size())/1e6)
	return nil
}

// static rejects a dynamically linked binary, because an empty image has no loader.
func static(path string) error {
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read %s (it must be a binary for Linux, GOOS=linux): %w", path, err)
	}
	defer file.Close() //nolint:errcheck // Only read.
	if file.Section(".interp") != nil {
		return fmt.Errorf("%s is linked dynamically: build it with CGO_ENABLED=0", path)
	}
	return nil
}

func baseImage(ctx context.Context, o options) (v1.Image, error) {
	if o.base == "" || o.base == scratch {
		return image.Scratch("linux", o.arch)
	}
	reference, err := name.ParseReference(o.base)
	if err != nil {
		return nil, fmt.Errorf("%q is not an image name: %w", o.base, err)
	}
	base, err := remote.Image(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: o.arch}))
	if err != nil {
		return nil, fmt.Errorf("pull the base image (scratch needs no registry): %w", err)
	}
	return base, nil
}
