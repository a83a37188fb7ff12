package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/test/controlplane"
	"github.com/xylem-io/xylem/test/fault/oracle"
	"github.com/xylem-io/xylem/test/fault/scenario"
)

const (
	// poll is the polling interval of a run.
	poll = 200 * time.Millisecond
	// patience is how long a run may take to settle. grace is how long the end state may then still
	// differ from the expected one, because counts are updated with a delay of some seconds.
	patience = 150 * time.Second
	grace    = 20 * time.Second
	// graceRestored is the grace for a run with a restored cluster. After the confirmation, progress
	// depends on that cluster's controllers, which have just started.
	graceRestored = time.Minute
	// rest is how long there must be no writes after the end; minute is the same for the long check.
	// lull is how long the long check waits for such a minute, because half a minute after the end,
	// Xylem still removes empty leaf namespaces.
	rest   = 1500 * time.Millisecond
	minute = time.Minute
	lull   = 3 * time.Minute
	// runTime is the timeout of a run.
	runTime = 8 * time.Minute
)

// Spec describes a run: a scenario and its faults.
type Spec struct {
	Scenario scenario.Scenario
	Faults   []Fault
	// Name is the name of the run's namespace, without the prefix.
	Name string
	// Minute requires a whole minute without writes after the end.
	Minute bool
}

// Reference is the result of a run without faults.
type Reference struct {
	State  []string
	Points []Point
}

// Result describes a completed run.
type Result struct {
	Spec Spec
	// Violations are the violations that the oracles found. Dump is the state at that time.
	Violations []oracle.Violation
	Dump       string
	// Missed are the faults whose write did not occur. The run is judged anyway.
	Missed []Fault
	// Points are the writes, in order.
	Points []Point
	State  []string
	Took   time.Duration
	// Err is the error that kept the run from being judged. It is not a failure of Xylem.
	Err error
	// Dirty means that the rig cannot be reused.
	Dirty bool
}

// run executes a run. reference may be nil.
func (b *bench) run(ctx context.Context, spec Spec, reference *Reference) (result Result) {
	result.Spec = spec
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, runTime, fmt.Errorf("a run has %s", runTime))
	defer cancel()
	defer func() { result.Took = time.Since(began) }()

	w := scenario.NewWorld(b.Rig, oracle.NamespacePrefix+spec.Name)
	s, err := b.prepare(ctx, w, spec.Scenario)
	if err != nil {
		result.Err, result.Dirty = err, true
		result.Dump = b.dump(ctx, w.Namespace)
		return result
	}
	in, err := inject(ctx, b.Rig, w.Namespace, spec.Faults)
	if err != nil {
		result.Err, result.Dirty = err, true
		return result
	}
	e, err := b.judged(ctx, w, spec, s, in, reference)
	result.Points, result.Missed, result.State = in.seen(), in.missed(), e.State
	if err != nil {
		result.Err, result.Dirty = err, true
	}
	result.Violations = oracle.Judge(e)
	if err != nil || len(result.Violations) > 0 {
		result.Dirty = true
		result.Dump = b.dump(ctx, w.Namespace)
		return result
	}
	if e.Restored != nil {
		result.Dirty = true // the restore also brought back the objects of other runs
		return result
	}
	if err := b.teardown(ctx, w, spec.Scenario, s); err != nil {
		result.Dirty = true
		result.Err = fmt.Errorf("clean up: %w", err)
		result.Dump = b.dump(ctx, w.Namespace)
	}
	// A panic during cleanup counts, too.
	result.Violations = oracle.Judge(oracle.Evidence{Panics: b.panicked()})
	if len(result.Violations) > 0 {
		result.Dirty = true
	}
	return result
}

// prepare creates the namespace and runs the scenario's setup.
func (b *bench) prepare(ctx context.Context, w *scenario.World, sc scenario.Scenario) (*start, error) {
	s, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.Host.API.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", w.Namespace, err)
	}
	if sc.Setup == nil {
		return s, nil
	}
	if err := sc.Setup(ctx, w); err != nil {
		return nil, fmt.Errorf("set up %s: %w", sc.Name, err)
	}
	_, _, err = b.still(ctx, func(context.Context) error { return nil }, w.Namespace)
	return s, err
}

// outcome describes the end of a run.
type outcome struct {
	// quiet contains the writes of the last interval. unsettled describes what was missing when
	// patience ran out, or is empty.
	quiet     map[string]controlplane.Requests
	unsettled string
	// restored is the restore during the run, or nil.
	restored *oracle.Restore
}

// come runs the scenario's actions and waits for the end.
func (b *bench) come(ctx context.Context, w *scenario.World, spec Spec, in *injector) (end outcome, err error) {
	acted := spec.Scenario.Act(ctx, w)
	for again := true; again; again = !in.close() {
		end.quiet, end.unsettled, err = b.still(ctx, func(ctx context.Context) error {
			if !in.over() {
				return fmt.Errorf("a fault is still in progress")
			}
			if at, _ := in.restore.made(); !at.IsZero() {
				return nil
			}
			if acted != nil {
				return acted
			}
			if err := b.Linked(ctx); err != nil {
				return err
			}
			return spec.Scenario.Settled(ctx, w)
		}, w.Namespace)
		if err != nil {
			return end, err
		}
	}
	if at, _ := in.restore.made(); !at.IsZero() {
		return b.restored(ctx, w, in.restore)
	}
	return end, nil
}

// judged runs the scenario, waits for the end, and collects the evidence until the oracles find no
// violation or the grace period is over.
func (b *bench) judged(ctx context.Context, w *scenario.World, spec Spec, s *start, in *injector, reference *Reference) (oracle.Evidence, error) {
	defer in.end()
	end, err := b.come(ctx, w, spec, in)
	if err != nil {
		return oracle.Evidence{}, err
	}
	if end.unsettled == "" && spec.Minute {
		if end.quiet, err = b.long(ctx, w.Namespace); err != nil {
			return oracle.Evidence{}, err
		}
	}
	deadline := time.Now().Add(grace)
	if end.restored != nil {
		deadline = time.Now().Add(graceRestored)
	}
	for {
		e, err := b.evidence(ctx, w, s)
		if err != nil {
			return e, err
		}
		e.Unsettled, e.Quiet, e.Strict, e.Restored = end.unsettled, end.quiet, spec.Minute, end.restored
		if reference != nil && end.restored == nil {
			e.Reference = reference.State
		}
		e.Panics = b.panicked()
		if len(oracle.Judge(e)) == 0 || end.unsettled != "" || time.Now().After(deadline) {
			return e, nil
		}
		if err := pause(ctx, poll*5); err != nil {
			return e, err
		}
	}
}

// still waits until a condition is met and no write has occurred for the duration of rest. If
// patience runs out first, it returns what was missing or, if the condition was met, the writes of
// the last interval.
func (b *bench) still(
	ctx context.Context, so func(context.Context) error, namespace string,
) (writes map[string]controlplane.Requests, lacking string, err error) {
	deadline := time.Now().Add(b.patience)
	for {
		last := so(ctx)
		if last == nil {
			if writes, err = b.watched(ctx, rest); err != nil {
				return nil, "", err
			}
			if passing(writes, namespace) == 0 && so(ctx) == nil {
				return writes, "", nil
			}
		}
		if time.Now().After(deadline) {
			if last != nil {
				return nil, last.Error(), nil
			}
			return writes, "", nil // settled, but Xylem still writes (I5)
		}
		if err := pause(ctx, poll); err != nil {
			return nil, "", err
		}
	}
}

// watched waits for the given duration, and returns the writes during it.
func (b *bench) watched(ctx context.Context, while time.Duration) (map[string]controlplane.Requests, error) {
	marks, err := b.marks(ctx)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, while); err != nil {
		return nil, err
	}
	return b.since(ctx, marks)
}

// passing counts the writes that oracle.Lasting selects.
func passing(writes map[string]controlplane.Requests, namespace string) int {
	n := 0
	for _, requests := range writes {
		n += len(oracle.Lasting(requests, namespace, false))
	}
	return n
}

// long waits for a minute without writes that oracle.Lasting selects. It returns the writes of the
// last minute.
func (b *bench) long(ctx context.Context, namespace string) (map[string]controlplane.Requests, error) {
	marks, err := b.marks(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	last := began
	for {
		all, err := b.since(ctx, marks)
		if err != nil {
			return nil, err
		}
		late := map[string]controlplane.Requests{}
		for cluster, requests := range all {
			for _, r := range oracle.Lasting(requests, namespace, true) {
				if r.Time.After(last) {
					last = r.Time
				}
				if time.Since(r.Time) < minute {
					late[cluster] = append(late[cluster], r)
				}
			}
		}
		if time.Since(last) > minute || time.Since(began) > lull {
			return late, nil
		}
		if err := pause(ctx, poll*10); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// dump returns the complete state at a failure, for analysis.
func (b *bench) dump(ctx context.Context, namespace string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	var out strings.Builder
	b.Dump(ctx, &out, namespace)
	fmt.Fprintf(&out, "--- writes of the manager, through the proxies\n")
	for _, r := range b.Writes.Requests() {
		if r.Resource != "leases" {
			fmt.Fprintf(&out, "%s %4d %s %s/%s %d %s\n", r.At.Format("15:04:05.000"), r.Seq, r.Key(), r.Namespace, r.Name, r.Status, r.Fault)
		}
	}
	return out.String()
}

// Command returns the command that repeats a run.
func (s Spec) Command() string {
	var out strings.Builder
	fmt.Fprintf(&out, "go run ./test/fault replay --scenario %s", s.Scenario.Name)
	for _, f := range s.Faults {
		fmt.Fprintf(&out, " --fault '%s'", f)
	}
	return out.String()
}

// distinct returns a run's points without duplicates, in order.
func distinct(points []Point) []Point {
	var all []Point
	seen := map[Point]bool{}
	for _, p := range points {
		if !seen[p] {
			seen[p] = true
			all = append(all, p)
		}
	}
	return all
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
