// Command nodeimage builds a node image for kind without a registry: the programs from Go
// modules, the operating system from Debian packages, and kind's files from its module. The
// result is the same as the image from `kind build node-image`, because kind's own builder
// assembles it.
//
// It needs Go, a Docker engine, debootstrap, and root permissions for debootstrap. See
// README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/kind/pkg/build/nodeimage"
	"sigs.k8s.io/kind/pkg/cmd"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

// defaultImage is the image name that README.md uses for KIND_NODE_IMAGE.
const defaultImage = "xylem-kind-node:dev"

func main() {
	image := flag.String("image", defaultImage, "name of the node image")
	programsOnly := flag.Bool("programs", false, "only build the programs, without Docker or root")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *image, *programsOnly)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nodeimage:", err)
		os.Exit(1)
	}
}

// progress prints a message before a long step.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func run(ctx context.Context, image string, programsOnly bool) error {
	root, err := kubebin.Root()
	if err != nil {
		return err
	}
	start := time.Now()
	if !programsOnly {
		if err := requirements(ctx); err != nil {
			return err
		}
	}
	programs, err := buildPrograms(ctx, root)
	if err != nil || programsOnly {
		return err
	}
	progress("node image: built the programs after %s", time.Since(start).Round(time.Second))
	system, err := bootstrap(ctx)
	if err != nil {
		return err
	}
	progress("node image: built the operating system after %s", time.Since(start).Round(time.Second))
	work, err := os.MkdirTemp("", "xylem-node-image-")
	if err != nil {
		return fmt.Errorf("create a work directory: %w", err)
	}
	if err := errors.Join(assemble(ctx, root, work, image, programs, system), os.RemoveAll(work)); err != nil {
		return err
	}
	progress("node image: built %s after %s", image, time.Since(start).Round(time.Second))
	return nil
}

// requirements reports missing requirements of this machine before the build begins.
func requirements(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("debootstrap creates device files and changes its root directory: run this command as root")
	}
	for _, program := range []string{"docker", "debootstrap", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not installed (Debian: apt-get install docker.io debootstrap tar): %w", program, err)
		}
	}
	if out, err := exec.CommandContext(ctx, "docker", "info").CombinedOutput(); err != nil {
		return fmt.Errorf("the Docker engine does not respond. Start it: %w\n%s", err, out)
	}
	return nil
}

// assemble builds the base image, packages the Kubernetes binaries as a release archive, and has
// kind combine the two.
func assemble(ctx context.Context, root, work, image string, programs programDirs, system string) error {
	kind, err := moduleDir(ctx, root, "sigs.k8s.io/kind")
	if err != nil {
		return err
	}
	base := image + "-base"
	if err := loadBase(ctx, base, kind, work, programs, system); err != nil {
		return err
	}
	release := filepath.Join(work, "kubernetes-server.tar.gz")
	if err := packRelease(ctx, release, kind, work, programs, system); err != nil {
		return err
	}
	// kind extracts the archive into TMPDIR, and does not delete it.
	if err := os.Setenv("TMPDIR", work); err != nil {
		return err
	}
	err = nodeimage.Build(
		nodeimage.WithBuildType("file"), nodeimage.WithKubeParam(release),
		nodeimage.WithBaseImage(base), nodeimage.WithImage(image), nodeimage.WithLogger(cmd.NewLogger()),
	)
	if err != nil {
		return fmt.Errorf("build %s: %w", image, err)
	}
	return nil
}
