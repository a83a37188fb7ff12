// Command kubebuild builds the programs of loopback clusters once, into the user's cache directory:
// etcd, the Kubernetes control plane, kubectl, the CSI sidecars, KWOK, and the tests' CSI driver.
// It needs only the Go toolchain. With --core, it builds only the programs that every cluster
// needs, and those that its arguments name. With --kubernetes, it builds only the control plane of
// another Kubernetes version.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
)

func main() {
	printDir := flag.Bool("print-dir", false, "print the directory of the programs, and build nothing")
	onlyCore := flag.Bool("core", false, "build only the programs that every cluster needs, and those that the arguments name")
	version := flag.String("kubernetes", "", "build only the control plane of this minor version (such as 1.36), or of all versions in test/kube (all)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *printDir, *onlyCore, *version, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubebuild:", err)
		os.Exit(1)
	}
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func run(ctx context.Context, printDir, onlyCore bool, version string, extras []string) error {
	root, err := kubebin.Root()
	if err != nil {
		return err
	}
	if printDir {
		dir, err := kubebin.Dir(root)
		if err != nil {
			return err
		}
		fmt.Println(dir)
		return nil
	}
	if version != "" {
		return buildVersions(ctx, root, version)
	}
	programs := kubebin.All()
	for _, name := range extras {
		if !slices.Contains(programs, name) {
			return fmt.Errorf("unknown program %q: want one of %s", name, strings.Join(programs, ", "))
		}
	}
	if onlyCore {
		programs = append(kubebin.Core(), extras...)
	}
	if _, err := kubebin.Build(ctx, root, programs, progress); err != nil {
		return err
	}
	_, err = kubebin.CSIDriver(ctx, root, progress)
	return err
}

// buildVersions builds the control plane of a version, or of all.
func buildVersions(ctx context.Context, root, version string) error {
	versions := []string{version}
	if version == "all" {
		var err error
		if versions, err = kubebin.Versions(root); err != nil {
			return err
		}
	}
	for _, v := range versions {
		if _, err := kubebin.BuildVersion(ctx, root, v, progress); err != nil {
			return err
		}
	}
	return nil
}
