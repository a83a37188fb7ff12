package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Tally counts runs by result.
type Tally struct {
	Runs, Faults, Missed, Violations, Errors int
	Took                                     time.Duration
}

// Add counts a result.
func (t *Tally) Add(r Result) {
	t.Runs++
	t.Faults += len(r.Spec.Faults) - len(r.Missed)
	t.Missed += len(r.Missed)
	t.Violations += len(r.Violations)
	t.Took += r.Took
	if r.Err != nil {
		t.Errors++
	}
}

func (t *Tally) String() string {
	return fmt.Sprintf("%d runs, %d faults injected, %d faults not reached, %d violations, %d runs that could not run",
		t.Runs, t.Faults, t.Missed, t.Violations, t.Errors)
}

// Report counts the results and prints each failure.
type Report struct {
	Total     Tally
	scenarios map[string]*Tally
	began     time.Time
	dir       string
	out       func(format string, args ...any)
}

// NewReport returns a report that prints lines to out, and writes the state at each failure to a
// file in the directory.
func NewReport(dir string, out func(format string, args ...any)) *Report {
	return &Report{scenarios: map[string]*Tally{}, began: time.Now(), dir: dir, out: out}
}

// Elapsed returns the time since the start.
func (r *Report) Elapsed() time.Duration { return time.Since(r.began) }

// Add counts a result and prints it if it is a failure.
func (r *Report) Add(result Result) {
	r.Total.Add(result)
	name := result.Spec.Scenario.Name
	if r.scenarios[name] == nil {
		r.scenarios[name] = &Tally{}
	}
	r.scenarios[name].Add(result)
	what := "ok"
	switch {
	case len(result.Violations) > 0:
		what = "VIOLATED"
	case result.Err != nil:
		what = "could not run"
	case len(result.Missed) > 0:
		what = "ok, not reached: " + Describe(result.Missed)
	}
	r.out("%8s %5d  %-18s %-60s %5.1fs  %s", r.Elapsed().Round(time.Second), r.Total.Runs, name, Describe(result.Spec.Faults), result.Took.Seconds(), what)
	if len(result.Violations) > 0 || result.Err != nil {
		r.fail(result)
	}
}

func (r *Report) fail(result Result) {
	var text strings.Builder
	for _, v := range result.Violations {
		fmt.Fprintf(&text, "%s\n", v)
	}
	if result.Err != nil {
		fmt.Fprintf(&text, "error: %v\n", result.Err)
	}
	file := filepath.Join(r.dir, result.Spec.Name+".txt")
	content := fmt.Sprintf("%s\n%s\n\n%s", result.Spec.Command(), text.String(), result.Dump)
	err := os.MkdirAll(r.dir, 0o750)
	if err == nil {
		err = os.WriteFile(file, []byte(content), 0o600)
	}
	if err != nil {
		file = err.Error()
	}
	r.out("\n%s\nreplay: %s\ncomplete state: %s\n", strings.TrimSpace(text.String()), result.Spec.Command(), file)
}

// String returns a table of the results by scenario.
func (r *Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-20s %6s %7s %12s %11s %7s %9s\n", "scenario", "runs", "faults", "not reached", "violations", "errors", "time/run")
	for _, name := range sortedKeys(r.scenarios) {
		t := r.scenarios[name]
		fmt.Fprintf(&out, "%-20s %6d %7d %12d %11d %7d %8.1fs\n", name, t.Runs, t.Faults, t.Missed, t.Violations, t.Errors, t.Took.Seconds()/float64(t.Runs))
	}
	fmt.Fprintf(&out, "%s, in %s\n", &r.Total, r.Elapsed().Round(time.Second))
	return out.String()
}
