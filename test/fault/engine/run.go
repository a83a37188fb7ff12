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
	// poll is how often a run is examined.
	poll = 200 * time.Millisecond
	// patience is how long a run may take to come to its end; grace, how long
	// its end may still be other than it should be: counts lag by seconds.
	patience = 150 * time.Second
	grace    = 20 * time.Second
	// graceRestored is that of a run in which a cluster was restored: what the confirmation
	// lets go on ends with controllers of that cluster, which have just been started.
	graceRestored = time.Minute
	// rest is how long nothing may be written once it is there; minute is that
	// of the long look, and lull what may come before it: an empty leaf namespace
	// is removed after half a minute.
	rest   = 1500 * time.Millisecond
	minute = time.Minute
	lull   = 3 * time.Minute
	// runTime bounds a run altogether.
	runTime = 8 * time.Minute
)

// Spec is a run: a scenario, and what is to go wrong.
type Spec struct {
	Scenario scenario.Scenario
	Faults   []Fault
	// Name is that of its namespace, without the prefix.
	Name string
	// Minute has it wait for a whole minute without a write as well.
	Minute bool
}

// Reference is what a run without faults came to.
type Reference struct {
	State  []string
	Points []Point
}

// Result is what became of a run.
type Result struct {
	Spec Spec
	// Violations are what the oracles found; Dump what there was then.
	Violations []oracle.Violation
	Dump       string
	// Missed are faults whose write was not made: judged anyway.
	Missed []Fault
	// Points are the writes, in their order.
	Points []Point
	State  []string
	Took   time.Duration
	// Err is what kept the run from being made, which says nothing of Xylem.
	Err error
	// Dirty: the rig cannot be used again.
	Dirty bool
}

// run makes a run. Reference may be nil.
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
		result.Dirty = true // what is left of other runs has come back as well
		return result
	}
	if err := b.teardown(ctx, w, spec.Scenario, s); err != nil {
		result.Dirty = true
		result.Err = fmt.Errorf("clean up: %w", err)
		result.Dump = b.dump(ctx, w.Namespace)
	}
	// A panic while it is cleaned up is one as well.
	result.Violations = oracle.Judge(oracle.Evidence{Panics: b.panicked()})
	if len(result.Violations) > 0 {
		result.Dirty = true
	}
	return result
}

// prepare creates the namespace and brings the clusters to where the scenario begins.
func (b *bench) prepare(ctx context.Context, w *scenario.World, sc scenario.Scenario) (*start, error) {
	s, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.Host.API.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}); err != nil {
		return nil, fmt.Errorf("make namespace %s: %w", w.Namespace, err)
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

// outcome is how a run came to its end.
type outcome struct {
	// quiet are the writes of the last while, and unsettled what was lacking when patience
	// ran out.
	quiet     map[string]controlplane.Requests
	unsettled string
	// restored is the restore that was in the middle of it; nil: none was.
	restored *oracle.Restore
}

// come acts and waits for the end.
func (b *bench) come(ctx context.Context, w *scenario.World, spec Spec, in *injector) (end outcome, err error) {
	acted := spec.Scenario.Act(ctx, w)
	for again := true; again; again = !in.close() {
		end.quiet, end.unsettled, err = b.still(ctx, func(ctx context.Context) error {
			if !in.over() {
				return fmt.Errorf("a fault is still going on")
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

// judged acts, waits for the end and collects the evidence, until it says that
// all is well, or long enough.
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

// still waits until something is so, and nothing has been written for a while. It
// returns the writes of the last such while, which are none unless patience ran
// out, and what was lacking then.
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
			return writes, "", nil // it is there, and writes on and on: I5
		}
		if err := pause(ctx, poll); err != nil {
			return nil, "", err
		}
	}
}

// watched are the writes of the next while.
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

// passing is how many of the writes count.
func passing(writes map[string]controlplane.Requests, namespace string) int {
	n := 0
	for _, requests := range writes {
		n += len(oracle.Lasting(requests, namespace, false))
	}
	return n
}

// long waits for a minute in which nothing at all is written, Leases aside, and
// returns the writes of the last one.
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

// dump is everything that there is to look at.
func (b *bench) dump(ctx context.Context, namespace string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	var out strings.Builder
	b.Dump(ctx, &out, namespace)
	fmt.Fprintf(&out, "--- what the manager wrote, through the proxies\n")
	for _, r := range b.Writes.Requests() {
		if r.Resource != "leases" {
			fmt.Fprintf(&out, "%s %4d %s %s/%s %d %s\n", r.At.Format("15:04:05.000"), r.Seq, r.Key(), r.Namespace, r.Name, r.Status, r.Fault)
		}
	}
	return out.String()
}

// Command is what replays a run.
func (s Spec) Command() string {
	var out strings.Builder
	fmt.Fprintf(&out, "go run ./test/fault replay --scenario %s", s.Scenario.Name)
	for _, f := range s.Faults {
		fmt.Fprintf(&out, " --fault '%s'", f)
	}
	return out.String()
}

// distinct are the points of a run, each once, in their order.
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

// sortedKeys are the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
