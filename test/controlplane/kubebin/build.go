package kubebin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// buildPrefix begins the names of directories that hold unfinished programs.
const buildPrefix = ".building-"

// Build builds the programs of the repository at root that are not there yet
// and returns their directory. Each appears under its name only when it is
// whole, so that a build that was killed goes on where it stopped; concurrent
// builds wait for each other. progress receives a line for each program.
func Build(ctx context.Context, root string, progress func(format string, args ...any)) (string, error) {
	dir, err := Dir(root)
	if err != nil {
		return "", err
	}
	if Check(dir) == nil {
		progress("cluster programs: already built in %s", dir)
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // As in CacheDir.
		return "", fmt.Errorf("making the directory of the cluster programs: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(dir, ".lock"), func() {
		progress("cluster programs: waiting for another build to finish")
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	// With the lock held, these are what killed builds left behind.
	leftovers, _ := filepath.Glob(filepath.Join(dir, buildPrefix+"*"))
	for _, leftover := range leftovers {
		if err := os.RemoveAll(leftover); err != nil {
			return "", fmt.Errorf("removing what a killed build left: %w", err)
		}
	}

	versions, err := requirements(root)
	if err != nil {
		return "", err
	}
	for i, t := range targets {
		path := filepath.Join(dir, t.name)
		label := fmt.Sprintf("[%d/%d] %s %s", i+1, len(targets), t.name, versions[t.module])
		if _, err := os.Stat(path); err == nil {
			progress("%s: already built", label)
			continue
		}
		progress("%s: building (the first ones take minutes, for all compile what they share)", label)
		start := time.Now()
		done := ticking(func(since time.Duration) { progress("%s: still building, %s", label, since.Round(time.Second)) })
		err := buildOne(ctx, root, t, versions, path)
		done()
		if err != nil {
			return "", err
		}
		progress("%s: %s", label, time.Since(start).Round(time.Second))
	}
	return dir, nil
}

// tick is how often somebody who waits is told that it goes on.
const tick = 15 * time.Second

// ticking calls say every tick, with the time that has passed, until it is done.
func ticking(say func(since time.Duration)) (done func()) {
	start, stop, stopped := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-ticker.C:
				say(now.Sub(start))
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

func buildOne(ctx context.Context, root string, t target, versions map[string]string, path string) error {
	flags, err := buildFlags(t, versions)
	if err != nil {
		return err
	}
	return GoBuild(ctx, moduleDir(root), path, t.pkg, flags...)
}

// GoBuild builds the main package pkg of the module in dir into path. It writes
// beside path first and renames, so that path is whole or absent.
func GoBuild(ctx context.Context, dir, path, pkg string, flags ...string) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(path), buildPrefix)
	if err != nil {
		return fmt.Errorf("building %s: %w", pkg, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()

	whole := filepath.Join(tmp, filepath.Base(path))
	args := append([]string{"build", "-o", whole}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...) //nolint:gosec // Our own package names.
	cmd.Dir = dir
	// An interrupt lets the toolchain clean up; WaitDelay is for one that will not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	// GOFLAGS and GOWORK are the caller's: neither may change what is built.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("building %s: %w", pkg, context.Cause(ctx))
		}
		return fmt.Errorf("building %s: %w\n%s", pkg, err, strings.TrimSpace(out.String()))
	}
	if err := os.Rename(whole, path); err != nil {
		return fmt.Errorf("building %s: %w", pkg, err)
	}
	return nil
}

// driverSources are the directories that the CSI driver is built from.
var driverSources = []string{
	"test/controlplane/cmd/csidriver", "test/controlplane/csidriver", "test/controlplane/ledger",
}

// CSIDriver builds the CSI driver of the repository at root, unless it is there,
// and returns its path. Its sources change more often than versions do, so it
// has a name of its own in the cache.
func CSIDriver(ctx context.Context, root string, progress func(format string, args ...any)) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	key, err := driverKey(root)
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "csidriver-"+key)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	progress("csidriver: building")
	start := time.Now()
	err = GoBuild(ctx, root, path, "./"+driverSources[0], "-trimpath", "-buildvcs=false", "-ldflags", "-s -w")
	if err != nil {
		return "", err
	}
	progress("csidriver: %s", time.Since(start).Round(time.Second))
	return path, nil
}

func driverKey(root string) (string, error) {
	files := []string{filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum")}
	for _, dir := range driverSources {
		sources, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return "", fmt.Errorf("reading what the CSI driver is built from: %w", err)
		}
		for _, s := range sources {
			if !strings.HasSuffix(s, "_test.go") {
				files = append(files, s)
			}
		}
	}
	h := sha256.New()
	for _, name := range files {
		content, err := os.ReadFile(name) //nolint:gosec // Sources of this repository.
		if err != nil {
			return "", fmt.Errorf("reading what the CSI driver is built from: %w", err)
		}
		h.Write(fmt.Appendf(nil, "%s %d\n", filepath.Base(name), len(content)))
		h.Write(content)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
