// Command index joins image archives for several architectures, which cmd/image writes, into one
// image index. It writes the index as an OCI layout and, if requested, pushes it with the
// credentials from `docker login`. It prints the index's digest.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/xylem-io/xylem/test/image"
)

func main() {
	to := flag.String("to", "dist/image", "Directory to write the OCI layout to.")
	push := flag.String("push", "", "Name and tag to push the index to. If empty, the command does not push it.")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Usage: index [--to DIRECTORY] [--push IMAGE:TAG] ARCHIVE…")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *to, *push, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "index:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, to, push string, archives []string) error {
	images := make([]v1.Image, 0, len(archives))
	for _, path := range archives {
		one, err := tarball.ImageFromPath(path, nil)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		images = append(images, one)
	}
	index, err := image.Index(images...)
	if err != nil {
		return err
	}
	if err := image.SaveIndex(to, index); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("read the index's digest: %w", err)
	}
	fmt.Println(digest)
	if push == "" {
		return nil
	}
	reference, err := name.NewTag(push)
	if err != nil {
		return fmt.Errorf("%q is not an image name with a tag: %w", push, err)
	}
	if err := remote.WriteIndex(reference, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", reference, err)
	}
	return nil
}
