package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xylem-io/xylem/test/machine"
	"github.com/xylem-io/xylem/test/run/reports"
)

const (
	// stopGrace is the time between SIGTERM and SIGKILL for an interrupted step.
	stopGrace = 30 * time.Second
	// outputGrace is how long to wait for the end of a step's output after the step has ended. Only
	// processes that it has left behind keep the output open.
	outputGrace = 5 * time.Second
	// memoryInterval is the interval at which the available memory is read.
	memoryInterval = time.Second
	// tailLines is how much of a failed step's output is repeated if no story failed.
	tailLines = 80
	// causeLines is how much of a failed story's log is repeated at the end.
	causeLines = 12
)

// runner executes steps.
type runner struct {
	root, reports string
	memory        share
	out           io.Writer
}

// result is the outcome of a step.
type result struct {
	step
	log       string
	ran       string
	wall, cpu time.Duration
	memory    int64 // bytes, at most
	err       error
}

// prepare creates the directory for reports. A run of the quick tier begins with an empty one.
func (r *runner) prepare(chosen []string) error {
	if slices.Contains(chosen, quick) {
		if err := os.RemoveAll(r.reports); err != nil {
			return fmt.Errorf("remove earlier reports: %w", err)
		}
	}
	if err := os.MkdirAll(r.reports, 0o755); err != nil { //nolint:gosec // test reports
		return fmt.Errorf("create the directory for reports: %w", err)
	}
	return nil
}

// runStep executes a step, copies its output to a file, and measures it.
func (r *runner) runStep(ctx context.Context, s step) (res result) {
	res = result{step: s, log: filepath.Join(r.reports, strings.ReplaceAll(s.name, " ", "-")+".log")}
	before := time.Now()
	cpu := childTime()
	low := lowest(machine.AvailableMemory)
	defer func() {
		res.wall, res.cpu, res.memory = time.Since(before).Round(time.Second), (childTime() - cpu).Round(time.Second), low()
	}()
	log, err := os.Create(res.log)
	if err != nil {
		res.err = fmt.Errorf("create the log: %w", err)
		return res
	}
	defer func() { _ = log.Close() }()
	res.err = r.make(ctx, io.MultiWriter(r.out, log), s)
	res.ran, err = r.ran(res.log, before)
	res.err = errors.Join(res.err, err)
	return res
}

func (r *runner) ran(log string, since time.Time) (string, error) {
	output, err := os.ReadFile(log) //nolint:gosec // our own log
	if err != nil {
		return "", fmt.Errorf("read the log: %w", err)
	}
	return reports.Ran(r.reports, output, since)
}

// make runs a step's targets of the Makefile, and ends all of their processes.
func (r *runner) make(ctx context.Context, out io.Writer, s step) error {
	variables := []string{"TIER=" + s.tier, fmt.Sprintf("STORIES_PROCESSES=%d", r.memory.alone)}
	groups := [][]string{s.targets}
	parallel := s.parallel && r.memory.suites > 0
	if parallel {
		variables = []string{"TIER=" + s.tier, fmt.Sprintf("STORIES_PROCESSES=%d", r.memory.stories), fmt.Sprintf("INTEGRATION_PACKAGES=%d", r.memory.suites)}
		groups = slices.Collect(slices.Chunk(s.targets, 1))
	}
	var (
		commands []*exec.Cmd
		running  errgroup.Group
		writing  sync.Mutex
	)
	for _, targets := range groups {
		command := r.command(slices.Concat(targets, variables))
		finish := func() {}
		command.Stdout = out
		if parallel {
			whole := &lines{to: out, writing: &writing}
			command.Stdout, finish = whole, whole.finish
		}
		command.Stderr = command.Stdout
		if err := start(command); err != nil {
			return errors.Join(fmt.Errorf("start make: %w", err), killRest())
		}
		commands = append(commands, command)
		running.Go(func() error {
			defer finish()
			err := command.Wait()
			if errors.Is(err, exec.ErrWaitDelay) {
				return nil // killRest names the process that has the output open
			}
			return err
		})
	}
	ended := make(chan struct{})
	var err error // valid once the step has ended
	go func() {
		err = running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return errors.Join(err, killRest())
	case <-ctx.Done():
	}
	for _, command := range commands {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGTERM)
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	_ = killRest()
	return ctx.Err()
}

func (r *runner) command(arguments []string) *exec.Cmd {
	command := exec.Command("make", append([]string{"--no-print-directory"}, arguments...)...) //nolint:gosec,noctx // our own targets; stopped below
	command.Dir = r.root
	command.Env = append(os.Environ(), reports.Env+"="+r.reports)
	command.WaitDelay = outputGrace
	return command
}

// lines writes whole lines to a writer that several commands share.
type lines struct {
	to      io.Writer
	writing *sync.Mutex
	rest    []byte // the line that has begun
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := l.to.Write(l.rest[:end])
	l.rest = append([]byte(nil), l.rest[end:]...)
	return len(p), err
}

// finish ends the line that has begun.
func (l *lines) finish() {
	if len(l.rest) > 0 {
		_, _ = l.Write([]byte{'\n'})
	}
}

// lowest samples a value until the returned function is called, which returns by how much the value
// fell.
func lowest(value func() int64) (fell func() int64) {
	first := value()
	low := first
	done := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		ticker := time.NewTicker(memoryInterval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				low = min(low, value())
			}
		}
	})
	return func() int64 {
		close(done)
		sampling.Wait()
		return first - low
	}
}

// childTime returns the CPU time of all child processes that have ended, and of their children.
func childTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// printFailures prints the logs of failed stories first, and then the end of the output of the failed
// steps.
func (r *runner) printFailures(results []result, stories map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(stories)) {
		fmt.Fprintf(r.out, "\n=== Failed story: %s\n%s\n", name, stories[name])
	}
	for _, res := range results {
		if res.err == nil {
			continue
		}
		fmt.Fprintf(r.out, "\n=== Failed: %s (%v)\n", res.name, res.err)
		for _, line := range tail(res.log, tailLines) {
			fmt.Fprintln(r.out, line)
		}
	}
}

// printCauses repeats the beginning of the failed stories' logs, which is their name and the cause. Tools
// that show only the end of a long output then show these.
func (r *runner) printCauses(stories map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(stories)) {
		lines := strings.Split(strings.TrimSpace(stories[name]), "\n")
		fmt.Fprintf(r.out, "\n%s: %s\n", name, strings.Join(lines[:min(len(lines), causeLines)], "\n"))
	}
}

// tail returns the last lines of a log, without those about what passed.
func tail(path string, most int) []string {
	content, err := os.ReadFile(path) //nolint:gosec // our own log
	if err != nil {
		return []string{err.Error()}
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") || strings.HasPrefix(line, "--- PASS") || strings.HasPrefix(line, "=== RUN")
	})
	return lines[max(0, len(lines)-most):]
}

// printTable prints what each step ran and cost.
func printTable(out io.Writer, results []result) {
	var wall, cpu time.Duration
	fmt.Fprintf(out, "\n%-32s %8s %8s %9s  %s\n", "step", "wall s", "CPU s", "memory", "ran")
	for _, res := range results {
		ran := res.ran
		if res.err != nil {
			ran = strings.TrimSpace("FAILED  " + ran)
		}
		fmt.Fprintf(out, "%-32s %8.0f %8.0f %5d MiB  %s\n", res.name, res.wall.Seconds(), res.cpu.Seconds(), res.memory/machine.MiB, ran)
		wall, cpu = wall+res.wall, cpu+res.cpu
	}
	fmt.Fprintf(out, "%-32s %8.0f %8.0f             %s\n", "total", wall.Seconds(), cpu.Seconds(), load())
}
