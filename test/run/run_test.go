package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestShareOf(t *testing.T) {
	for name, tc := range map[string]struct {
		available int64
		set       string
		want      share
		err       string
	}{
		"plenty":                     {available: 24 * gib, want: share{alone: 3, stories: 2, suites: 2}},
		"a machine with 8 GiB":       {available: 7 * gib, want: share{alone: 2, stories: 1, suites: 1}},
		"enough for one":             {available: 4 * gib, want: share{alone: 1, stories: 1}},
		"not enough":                 {available: 2 * gib, err: "stop other programs, or set STORIES_PROCESSES=1"},
		"not enough, but set":        {available: 2 * gib, set: "1", want: share{alone: 1, stories: 1}},
		"one process":                {available: 24 * gib, set: "1", want: share{alone: 1, stories: 1, suites: 2}},
		"many processes":             {available: 24 * gib, set: "4", want: share{alone: 4, stories: 4}},
		"set to something else":      {available: 24 * gib, set: "many", err: `"many"`},
		"set to a number that fails": {available: 24 * gib, set: "0", err: `"0"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("STORIES_PROCESSES", tc.set)
			got, err := shareOf(tc.available)
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("shareOf(%d) = %+v, %v, want %+v, %q", tc.available, got, err, tc.want, tc.err)
			}
		})
	}
}

func TestEnoughSpace(t *testing.T) {
	if err := enoughSpace(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := enoughSpace("/proc"); err == nil || !strings.Contains(err.Error(), "set TMPDIR") {
		t.Errorf("a full file system: %v", err)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache", "test.lock")
	unlock, err := lock(path, "/a/clone")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(path, "/another/clone"); err == nil || !strings.Contains(err.Error(), "in /a/clone): wait until it ends, or stop it") {
		t.Errorf("a second run: %v", err)
	}
	unlock()
	unlock, err = lock(path, "/another/clone")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestStepsOf(t *testing.T) {
	steps, err := stepsOf([]string{quick, rest})
	if err != nil || len(steps) != len(tiers[quick])+len(tiers[rest]) {
		t.Errorf("%d steps, %v", len(steps), err)
	}
	for _, chosen := range [][]string{nil, {"everything"}} {
		if _, err := stepsOf(chosen); err == nil || !strings.Contains(err.Error(), "the tiers are") {
			t.Errorf("stepsOf(%v): %v", chosen, err)
		}
	}
}

// makefile has targets that pass, fail, leave a process behind, never end, and wait for each other.
const makefile = `
pass: ; @echo 'ok  	example/a	1s'; printf 'suite: 2 of 2' > "$$XYLEM_REPORTS/suite.ran"
fail: ; @echo 'ok  	example/a	1s'; echo 'FAIL example/b'; printf 'its log' > "$$XYLEM_REPORTS/suite-0.failed"; exit 1
again: ; @for n in 1 2 3; do printf 'why it failed' > "$$XYLEM_REPORTS/again-$$n.repeated"; [ "$$n" != '$(SPARED)' ] || break; done
leave: ; @setsid sleep 1000 &
orphan: ; @(setsid sleep 0.1 &)
pause: ; @sleep 1
meet-a meet-b: meet-%: ; @printf '$* begins, '; touch $*; until [ -e a ] && [ -e b ]; do sleep 0.1; done; printf '$* ends'
hang: ; @(trap '' TERM; setsid sleep 1000) & echo hanging; wait
`

func newRunner(t *testing.T) (*runner, *bytes.Buffer) {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "Makefile"), []byte(makefile), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := &runner{root: root, reports: filepath.Join(root, "dist", "test"), memory: share{alone: 1, stories: 1, suites: 1}, out: &out}
	if err := r.prepare([]string{quick}); err != nil {
		t.Fatal(err)
	}
	return r, &out
}

func TestRunAll(t *testing.T) {
	r, out := newRunner(t)
	earlier := filepath.Join(r.reports, "suite-7.failed")
	if err := os.WriteFile(earlier, []byte("log of an earlier run"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(earlier, time.Time{}, time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	err := r.runAll(t.Context(), []step{
		{name: "first step", targets: []string{"pass"}},
		{name: "second", targets: []string{"fail"}},
		{name: "third", targets: []string{"leave"}},
		{name: "orphaning", targets: []string{"orphan", "pause"}},
		{name: "last", targets: []string{"pass"}},
	})
	if err == nil || !strings.Contains(err.Error(), "failed: second, third. The logs are in dist/test") {
		t.Errorf("runAll() = %v", err)
	}
	text := out.String()
	if strings.Contains(text, "earlier run") {
		t.Errorf("a failure of an earlier run is printed:\n%s", text)
	}
	at := 0
	for _, want := range []string{
		"=== last", "=== Failed story: suite-0\nits log", "=== Failed: second (exit status 2)", "FAIL example/b",
		"=== Failed: third (left these processes behind, which were killed: sleep)", "wall s", "first step", "suite: 2 of 2, 1 packages passed", "second", "FAILED", "total", "suite-0: its log",
	} {
		n := strings.Index(text[at:], want)
		if n < 0 {
			t.Fatalf("no %q after %q in:\n%s", want, text[:at], text)
		}
		at += n + len(want)
	}
}

func TestRepeatedStories(t *testing.T) {
	r, out := newRunner(t)
	t.Setenv("SPARED", "2")
	if err := r.runAll(t.Context(), []step{{name: "two", targets: []string{"again"}}}); err != nil || !strings.Contains(out.String(), "again-2: why it failed\n\n2 stories failed and then passed") {
		t.Errorf("runAll() = %v, and printed:\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(r.reports, "data-1.repeated"), []byte("\nFailed: A volume is kept (I2)\n  why"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.runAll(t.Context(), []step{{name: "a story about data", targets: []string{"pass"}}}); err == nil || !strings.Contains(err.Error(), "data-1, a story about data, failed once") {
		t.Errorf("runAll() = %v", err)
	}
	t.Setenv("SPARED", "")
	if err := r.runAll(t.Context(), []step{{name: "three", targets: []string{"again"}}}); err == nil || !strings.Contains(err.Error(), "more than 2 stories had to be repeated") {
		t.Errorf("runAll() = %v", err)
	}
}

// The targets meet: each waits for the other.
func TestParallelTargets(t *testing.T) {
	r, out := newRunner(t)
	if err := r.runAll(t.Context(), []step{{name: "both", targets: []string{"meet-a", "meet-b"}, parallel: true}}); err != nil {
		t.Error(err)
	}
	for _, line := range []string{"a begins, a ends", "b begins, b ends"} {
		if !slices.Contains(strings.Split(out.String(), "\n"), line) {
			t.Errorf("no line %q in:\n%s", line, out)
		}
	}
	err := r.runAll(t.Context(), []step{{name: "one fails", targets: []string{"pass", "fail"}, parallel: true}})
	if err == nil || !strings.Contains(err.Error(), "failed: one fails") {
		t.Errorf("runAll() = %v", err)
	}
}

// hanging cancels a context when the hanging target prints its line.
type hanging struct {
	bytes.Buffer
	cancel context.CancelFunc
}

func (h *hanging) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("hanging")) {
		h.cancel()
	}
	return h.Buffer.Write(p)
}

func TestInterrupted(t *testing.T) {
	r, _ := newRunner(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.out = &hanging{cancel: cancel}
	err := r.runAll(ctx, []step{{name: "endless", targets: []string{"pass", "hang"}, parallel: true}, {name: "next", targets: []string{"pass"}}})
	if err == nil || err.Error() != `interrupted during "endless"; no process is left` {
		t.Errorf("runAll() = %v", err)
	}
	if left := children(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestMemory(t *testing.T) {
	values := make(chan int64, 3)
	for _, v := range []int64{10, 4, 8} {
		values <- v
	}
	sampled := make(chan struct{})
	fell := lowest(func() int64 {
		if len(values) == 1 {
			defer close(sampled)
		}
		select {
		case v := <-values:
			return v
		default:
			return 8
		}
	})
	select {
	case <-sampled:
	case <-time.After(time.Minute):
		t.Fatal("nothing was sampled")
	}
	if n := fell(); n != 6 {
		t.Errorf("fell by %d, want 6", n)
	}
}
