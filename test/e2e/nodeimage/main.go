// Command nodeimage builds a node image for kind without any registry: the
// programs from Go modules, the operating system from Debian packages, and
// kind's own files from its module. What comes out is as `kind build node-image`
// would have made it, for kind's own builder is what puts it together.
//
// It needs Go, a Docker engine, debootstrap, and root, which debootstrap asks
// for. See README.md.
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

// defaultImage is the name that README.md gives to KIND_NODE_IMAGE.
const defaultImage = "xylem-kind-node:dev"

func main() {
	image := flag.String("image", defaultImage, "name of the node image")
	programsOnly := flag.Bool("programs", false, "only build the programs, which needs neither Docker nor root")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *image, *programsOnly)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nodeimage:", err)
		os.Exit(1)
	}
}

// progress tells the user what takes so long.
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
	progress("node image: the programs are there after %s", time.Since(start).Round(time.Second))
	system, err := bootstrap(ctx)
	if err != nil {
		return err
	}
	progress("node image: the operating system is there after %s", time.Since(start).Round(time.Second))
	work, err := os.MkdirTemp("", "xylem-node-image-")
	if err != nil {
		return fmt.Errorf("making a work directory: %w", err)
	}
	if err := errors.Join(assemble(ctx, root, work, image, programs, system), os.RemoveAll(work)); err != nil {
		return err
	}
	progress("node image: %s is there after %s", image, time.Since(start).Round(time.Second))
	return nil
}

// requirements reports what is missing on this machine, before minutes are spent.
func requirements(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("debootstrap makes device files and changes its root directory: run this as root")
	}
	for _, program := range []string{"docker", "debootstrap", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not installed (Debian: apt-get install docker.io debootstrap tar): %w", program, err)
		}
	}
	if out, err := exec.CommandContext(ctx, "docker", "info").CombinedOutput(); err != nil {
		return fmt.Errorf("the Docker engine does not answer: start it: %w\n%s", err, out)
	}
	return nil
}

// assemble makes the base image, packs Kubernetes as a release does, and has
// kind put the one into the other.
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
	// kind extracts the archive into TMPDIR, and leaves it there.
	if err := os.Setenv("TMPDIR", work); err != nil {
		return err
	}
	err = nodeimage.Build(
		nodeimage.WithBuildType("file"), nodeimage.WithKubeParam(release),
		nodeimage.WithBaseImage(base), nodeimage.WithImage(image), nodeimage.WithLogger(cmd.NewLogger()),
	)
	if err != nil {
		return fmt.Errorf("building %s: %w", image, err)
	}
	return nil
}
