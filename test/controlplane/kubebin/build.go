package kubebin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"
)

// buildPrefix is the prefix of directories with unfinished programs.
const buildPrefix = ".building-"

// Build builds the missing programs (Core, All) for the repository at root, and returns their
// directory. It builds the core before the extras. For each, it first compiles all packages,
// which uses every processor and shows the progress. Then it links the programs one by one. A
// program gets its name only when it is complete, so a killed build resumes where it stopped.
// Concurrent builds wait for each other.
func Build(
	ctx context.Context, root string, programs []string, progress func(format string, args ...any),
) (string, error) {
	return build(ctx, defaultModule(root), programs, progress)
}

func build(ctx context.Context, m module, programs []string, progress func(format string, args ...any)) (string, error) {
	dir, err := dirOf(m)
	if err != nil {
		return "", err
	}
	if Check(dir, programs) == nil {
		progress("cluster programs: already built in %s", dir)
		return dir, nil
	}
	unlock, err := enter(ctx, dir, "cluster programs", progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	for _, group := range m.groups {
		if err := buildMissing(ctx, m, dir, group, programs, progress); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// buildMissing builds the missing programs among the requested ones of a group.
func buildMissing(
	ctx context.Context, m module, dir string, group []target, programs []string, progress func(format string, args ...any),
) error {
	missing := missingFrom(dir, group, programs)
	if len(missing) == 0 {
		return nil
	}
	versions, err := requirements(m)
	if err != nil {
		return err
	}
	progress("cluster programs: building %d of %d on %d processors. With an empty Go build cache, building all takes about %s",
		len(missing), len(m.targets()), runtime.GOMAXPROCS(0), estimate(runtime.GOMAXPROCS(0)))
	if err := compile(ctx, m, missing, progress); err != nil {
		return err
	}
	for i, t := range missing {
		label := fmt.Sprintf("[%d/%d] %s %s", i+1, len(missing), t.name, versions[t.module])
		start := time.Now()
		done := ticking(func(since time.Duration) { progress("%s: linking, %s", label, since.Round(time.Second)) })
		err := buildOne(ctx, m, t, versions, filepath.Join(dir, t.name))
		done()
		if err != nil {
			return err
		}
		progress("%s: built in %s", label, time.Since(start).Round(time.Second))
	}
	return nil
}

// missingFrom returns the requested programs of a group that dir lacks, in build order.
func missingFrom(dir string, group []target, programs []string) []target {
	var missing []target
	for _, t := range group {
		if !slices.Contains(programs, t.name) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, t.name)); err != nil {
			missing = append(missing, t)
		}
	}
	return missing
}

// The cost of a build with an empty cache: the processor time of the compiler, which uses all
// processors, and the time of the linkers, which mostly use one. It was measured on a cloud
// machine with two processors.
const (
	compileTime = 10 * time.Minute
	linkTime    = 1 * time.Minute
)

// estimate returns the duration of a build with an empty cache.
func estimate(processors int) time.Duration {
	return (compileTime/time.Duration(processors) + linkTime).Round(time.Minute)
}

// compile compiles all packages of the programs into Go's build cache, and reports the progress.
// The linkers reuse them.
func compile(ctx context.Context, m module, programs []target, progress func(format string, args ...any)) error {
	packages := make([]string, 0, len(programs))
	for _, t := range programs {
		packages = append(packages, t.pkg)
	}
	listed := goCommand(ctx, m.dir, append([]string{"list", "-mod=readonly", "-deps"}, packages...)...)
	all, err := listed.Output()
	if err != nil {
		return failed(ctx, "list the packages of the cluster programs", err, nil)
	}
	total := bytes.Count(all, []byte("\n"))

	// With -export, go list compiles without linking; -v names each package that was not in the
	// cache.
	args := []string{"list", "-export", "-v", "-deps", "-f", "{{/* nothing */}}", "-mod=readonly", "-trimpath", "-buildvcs=false"}
	cmd := goCommand(ctx, m.dir, append(args, packages...)...)
	var compiled lines
	cmd.Stderr = &compiled
	done := ticking(func(since time.Duration) {
		progress("cluster programs: compiled %d of at most %d packages, %s", compiled.count(), total, since.Round(time.Second))
	})
	start := time.Now()
	err = cmd.Run()
	done()
	if err != nil {
		return failed(ctx, "compile the cluster programs", err, compiled.tail())
	}
	progress("cluster programs: compiled %d packages in %s", compiled.count(), time.Since(start).Round(time.Second))
	return nil
}

// lines is a writer that counts lines and keeps the end of the text.
type lines struct {
	mu   sync.Mutex
	n    int
	last []byte
}

// kept is the number of bytes that lines keeps.
const kept = 8 << 10

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n += bytes.Count(p, []byte("\n"))
	l.last = append(l.last, p...)
	l.last = l.last[max(0, len(l.last)-kept):]
	return len(p), nil
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

func (l *lines) tail() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.last)
}

// tick is the interval of progress messages.
const tick = 15 * time.Second

// ticking calls say with the elapsed time at every tick, until the caller calls done.
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

func buildOne(ctx context.Context, m module, t target, versions map[string]string, path string) error {
	flags, err := buildFlags(t, versions)
	if err != nil {
		return err
	}
	return GoBuild(ctx, m.dir, path, t.pkg, flags...)
}

// GoBuild builds the main package pkg of the module in dir, and writes the program to path. It
// writes to a temporary file first and renames it, so that path is complete or absent.
func GoBuild(ctx context.Context, dir, path, pkg string, flags ...string) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(path), buildPrefix)
	if err != nil {
		return fmt.Errorf("build %s: %w", pkg, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()

	whole := filepath.Join(tmp, filepath.Base(path))
	args := append([]string{"build", "-o", whole}, flags...)
	cmd := goCommand(ctx, dir, append(args, pkg)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return failed(ctx, "build "+pkg, err, out.Bytes())
	}
	if err := os.Rename(whole, path); err != nil {
		return fmt.Errorf("build %s: %w", pkg, err)
	}
	return nil
}

// goCommand runs the Go toolchain in a directory.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // Our own package names.
	cmd.Dir = dir
	// After an interrupt, the toolchain cleans up. WaitDelay limits how long this may take.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	// GOFLAGS and GOWORK of the caller must not affect the build.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	return cmd
}

// failed returns an error for a failed command of the toolchain, with the command's output.
func failed(ctx context.Context, what string, err error, printed []byte) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	return fmt.Errorf("%s: %w\n%s", what, err, bytes.TrimSpace(printed))
}
