package kubebin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// unusedAfter is the time after which a program of this repository that was not used is removed
// from the cache. Each change of its sources leaves one behind.
const unusedAfter = 7 * 24 * time.Hour

// own is a program of this repository. Its sources change more often than versions do, so their
// hash is the name of its directory in the cache.
type own struct {
	name, pkg string
	// sources are the directories with the sources of all its packages, and embedded files.
	sources []string
}

var (
	csiDriver = own{name: "csidriver", pkg: "test/controlplane/cmd/csidriver", sources: []string{
		"test/controlplane/cmd/csidriver", "test/controlplane/csidriver", "test/controlplane/ledger",
	}}
	manager = own{name: "manager", pkg: "cmd/manager", sources: []string{"api", "cmd/manager", "config", "internal"}}
)

// ownFlags are the flags for go build. Without symbols, linking takes half the time.
var ownFlags = []string{"-trimpath", "-buildvcs=false", "-ldflags", "-s -w"}

// CSIDriver builds the CSI driver of the repository at root, unless it exists, and returns its
// path.
func CSIDriver(ctx context.Context, root string, progress func(format string, args ...any)) (string, error) {
	return csiDriver.build(ctx, root, progress)
}

// Manager builds the manager of the repository at root, unless it exists, and returns its path.
// The content of the file never changes.
func Manager(ctx context.Context, root string, progress func(format string, args ...any)) (string, error) {
	return manager.build(ctx, root, progress)
}

func (o own) build(ctx context.Context, root string, progress func(format string, args ...any)) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	key, err := o.key(root)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, o.name+"-"+key)
	path := filepath.Join(dir, o.name)
	if use(path) {
		return path, nil
	}
	unlock, err := enter(ctx, dir, o.name, progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if use(path) { // Another process has built it.
		return path, nil
	}
	progress("%s: building (takes a minute with an empty Go build cache)", o.name)
	start := time.Now()
	if err := GoBuild(ctx, root, path, "./"+o.pkg, ownFlags...); err != nil {
		return "", err
	}
	progress("%s: built in %s", o.name, time.Since(start).Round(time.Second))
	return path, o.removeUnused(cache)
}

// use reports whether the program exists, and records that it is in use.
func use(path string) bool {
	now := time.Now()
	return os.Chtimes(path, now, now) == nil
}

// removeUnused removes old versions of the program that no process has used for a while.
func (o own) removeUnused(cache string) error {
	programs, err := filepath.Glob(filepath.Join(cache, o.name+"-*", o.name))
	if err != nil {
		return fmt.Errorf("find old versions of %s: %w", o.name, err)
	}
	for _, path := range programs {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < unusedAfter {
			continue
		}
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			return fmt.Errorf("remove an old version of %s: %w", o.name, err)
		}
	}
	return nil
}

// key hashes everything on which the program depends: its sources, the versions of its modules,
// the flags, and the version of Go, which is that of the calling program.
func (o own) key(root string) (string, error) {
	h := sha256.New()
	h.Write(fmt.Appendf(nil, "%s %s/%s %s %q\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, o.pkg, ownFlags))
	for _, source := range append([]string{"go.mod", "go.sum"}, o.sources...) {
		err := filepath.WalkDir(filepath.Join(root, source), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path) //nolint:gosec // Sources of this repository.
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			h.Write(fmt.Appendf(nil, "%s %d\n", filepath.ToSlash(name), len(content)))
			h.Write(content)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("read the sources of %s: %w", o.name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// enter creates a directory of the cache and locks it for a build. Concurrent builds wait for each
// other.
func enter(ctx context.Context, dir, what string, progress func(format string, args ...any)) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // As in CacheDir.
		return nil, fmt.Errorf("create the directory of %s: %w", what, err)
	}
	unlock, err = lock(ctx, filepath.Join(dir, ".lock"), func() { progress("%s: waiting for another build to finish", what) })
	if err != nil {
		return nil, err
	}
	// This process holds the lock, so killed builds left these behind.
	leftovers, _ := filepath.Glob(filepath.Join(dir, buildPrefix+"*"))
	var errs []error
	for _, leftover := range leftovers {
		errs = append(errs, os.RemoveAll(leftover))
	}
	if err := errors.Join(errs...); err != nil {
		unlock()
		return nil, fmt.Errorf("remove the remains of a killed build: %w", err)
	}
	return unlock, nil
}
