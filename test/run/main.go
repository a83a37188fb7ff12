package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/machine"
	"github.com/xylem-io/xylem/test/run/reports"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "make test: %v\n", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// run executes the steps of the tiers.
func run(ctx context.Context, chosen []string) error {
	steps, err := stepsOf(chosen)
	if err != nil {
		return err
	}
	root, err := kubebin.Root()
	if err != nil {
		return err
	}
	cache, err := kubebin.CacheDir()
	if err != nil {
		return err
	}
	if err := endWithParent(); err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(cache, "test.lock"), root)
	if err != nil {
		return err
	}
	defer unlock()
	if err := enoughSpace(os.TempDir(), cache); err != nil {
		return err
	}
	memory, err := shareOf(machine.AvailableMemory())
	if err != nil {
		return err
	}
	r := &runner{root: root, reports: filepath.Join(root, "dist", "test"), memory: memory, out: os.Stdout}
	if err := r.prepare(chosen); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%s: %d steps; %s; %d processes run stories\n", strings.Join(chosen, ", "), len(steps), load(), memory.alone)
	return r.runAll(ctx, steps)
}

// mostRepeated is how many stories may fail and then pass when they are repeated, if XYLEM_REPEAT is set.
const mostRepeated = 2

// data matches the names of stories about the invariants I1 to I4, whose failure may be a lost or leaked volume. A
// repetition does not excuse it.
var data = regexp.MustCompile(`\bI[1-4]\b`)

// runAll executes steps until one is interrupted, and prints what failed and what ran.
func (r *runner) runAll(ctx context.Context, steps []step) error {
	var results []result
	begin := time.Now()
	for _, s := range steps {
		fmt.Fprintf(r.out, "\n=== %s\n", s.name)
		results = append(results, r.runStep(ctx, s))
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted during %q; no process is left", s.name)
		}
	}
	stories, err := reports.Failures(r.reports, begin)
	if err != nil {
		fmt.Fprintln(r.out, err)
	}
	repeated, err := reports.Repetitions(r.reports, begin)
	if err != nil {
		fmt.Fprintln(r.out, err)
	}
	r.printFailures(results, stories)
	printTable(r.out, results)
	r.printCauses(stories)
	r.printCauses(repeated)
	var failed []string
	for _, res := range results {
		if res.err != nil {
			failed = append(failed, res.name)
		}
	}
	if len(repeated) > 0 {
		fmt.Fprintf(r.out, "\n%d stories failed and then passed when they were repeated: see above. Find the cause of each.\n", len(repeated))
	}
	for name, log := range repeated {
		if title, _, _ := strings.Cut(strings.TrimSpace(log), "\n"); data.MatchString(title) {
			failed = append(failed, name+", a story about data, failed once")
		}
	}
	if len(repeated) > mostRepeated {
		failed = append(failed, fmt.Sprintf("more than %d stories had to be repeated", mostRepeated))
	}
	if len(failed) > 0 {
		return errors.New("failed: " + strings.Join(failed, ", ") + ". The logs are in dist/test")
	}
	return nil
}
