package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/fault/rig"
	"github.com/xylem-io/xylem/test/fault/scenario"
)

// Options configures runs.
type Options struct {
	// Manager is the manager's binary. If it is empty, New uses that of kubebin.Manager.
	Manager string
	// Rigs is the number of concurrent rigs. There can be more rigs than CPUs, because runs mostly
	// wait.
	Rigs int
	// Seed is the seed for all random choices.
	Seed uint64
	// Downtime is the time between the manager's death and its restart.
	Downtime time.Duration
	// Patience is how long a run may take to settle; 0 means 150 s. For a run that is known to
	// fail, it can be shorter.
	Patience time.Duration
	// References are results of another manager to compare with. For a scenario without one, the
	// engine executes a reference run with this manager.
	References map[string]*Reference
	// Progress receives progress messages. It may be nil.
	Progress func(format string, args ...any)
}

// Engine executes runs.
type Engine struct {
	options Options
	number  atomic.Int64

	mu         sync.Mutex
	references map[string]*Reference
	referred   map[string]bool // scenarios whose reference run has ended
}

// New returns an engine. It builds the manager unless its binary is given.
func New(ctx context.Context, o Options) (*Engine, error) {
	if o.Rigs == 0 {
		o.Rigs = 1
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	if o.Patience == 0 {
		o.Patience = patience
	}
	if o.References == nil {
		o.References = map[string]*Reference{}
	}
	e := &Engine{options: o, references: maps.Clone(o.References), referred: map[string]bool{}}
	if o.Manager != "" {
		return e, nil
	}
	// All rigs run the same manager, even if the tree changes during the runs.
	root, err := kubebin.Root()
	if err != nil {
		return nil, err
	}
	e.options.Manager, err = kubebin.Manager(ctx, root, o.Progress)
	return e, err
}

// Reference returns the result of a scenario without faults, or nil before the reference run.
func (e *Engine) Reference(name string) *Reference {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.references[name]
}

// Points returns the writes of a scenario without faults, or nil before its reference run.
func (e *Engine) Points(name string) []Point {
	if r := e.Reference(name); r != nil {
		return r.Points
	}
	return nil
}

// remember keeps the result of a run without faults as the reference.
func (e *Engine) remember(r Result) {
	if len(r.Spec.Faults) > 0 || r.Spec.Minute {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.referred[r.Spec.Scenario.Name] = true
	if r.Err != nil || len(r.Violations) > 0 {
		return // a failed run cannot serve as a reference
	}
	if e.options.References[r.Spec.Scenario.Name] != nil {
		return
	}
	e.references[r.Spec.Scenario.Name] = r.Reference()
}

// Specs executes each spec as a run, concurrently on the engine's rigs, and calls done with each
// result, one at a time. It returns when all runs have ended, or when ctx is done. Runs that did
// not start have no result.
func (e *Engine) Specs(ctx context.Context, specs iter.Seq[Spec], done func(Result)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := make(chan Spec)
	results := make(chan Result)
	failed := make(chan error, e.options.Rigs)
	var workers sync.WaitGroup
	for range e.options.Rigs {
		workers.Go(func() {
			err := e.work(ctx, queue, results)
			if err != nil {
				cancel() // if a rig cannot start now, later attempts would fail, too
			}
			failed <- err
		})
	}
	go func() {
		defer close(queue)
		for spec := range specs {
			select {
			case queue <- spec:
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() {
		workers.Wait()
		close(failed)
		close(results)
	}()
	for r := range results {
		e.remember(r)
		done(r)
	}
	var errs []error
	for err := range failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// WithReferences executes the reference runs of the scenarios, and then the specs that depend on
// them.
func (e *Engine) WithReferences(ctx context.Context, scenarios []scenario.Scenario, then func() iter.Seq[Spec]) iter.Seq[Spec] {
	return func(yield func(Spec) bool) {
		for _, spec := range References(scenarios) {
			if !yield(spec) {
				return
			}
		}
		for e.outstanding(scenarios) {
			if pause(ctx, poll) != nil {
				return
			}
		}
		for spec := range then() {
			if !yield(spec) {
				return
			}
		}
	}
}

// outstanding reports whether a reference run has not ended yet.
func (e *Engine) outstanding(scenarios []scenario.Scenario) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, sc := range scenarios {
		if !e.referred[sc.Name] {
			return true
		}
	}
	return false
}

// work executes runs on one rig. If a run leaves the rig dirty, work replaces it.
func (e *Engine) work(ctx context.Context, queue <-chan Spec, results chan<- Result) (err error) {
	var b *bench
	stop := func() error {
		if b == nil {
			return nil
		}
		defer func() { b = nil }()
		return b.Stop(context.WithoutCancel(ctx))
	}
	defer func() { err = errors.Join(err, stop()) }()
	for spec := range queue {
		var result Result
		for range 2 { // if the rig prevents a run, retry the run once on a new rig
			if b == nil {
				if b, err = e.bench(ctx); err != nil {
					return fmt.Errorf("start a rig: %w", err)
				}
			}
			spec.Name = e.name(spec)
			result = b.run(ctx, spec, e.Reference(spec.Scenario.Name))
			if result.Dirty {
				if err := stop(); err != nil {
					return fmt.Errorf("stop a rig: %w", err)
				}
			}
			if result.Err == nil || len(result.Violations) > 0 || ctx.Err() != nil {
				break
			}
			e.options.Progress("%s: could not run, retrying: %v", Describe(spec.Faults), result.Err)
		}
		if ctx.Err() != nil {
			return nil
		}
		results <- result
	}
	return nil
}

// bench starts a rig. On a busy machine, this may need several attempts.
func (e *Engine) bench(ctx context.Context) (b *bench, err error) {
	options := rig.Options{Manager: e.options.Manager, Downtime: e.options.Downtime, Progress: func(string, ...any) {}}
	for range rigTries {
		if b, err = newBench(ctx, options, e.options.Patience); err == nil || ctx.Err() != nil {
			return b, err
		}
		e.options.Progress("a rig did not start: %v", err)
	}
	return nil, err
}

// rigTries is the maximum number of attempts to start a rig.
const rigTries = 3

// name returns a run's name, from its scenario, the seed and its number.
func (e *Engine) name(s Spec) string {
	return fmt.Sprintf("%s-%s-%d", s.Scenario.Name, strconv.FormatUint(e.options.Seed, 36), e.number.Add(1))
}

// Run executes a scenario's reference run and then, if there are faults, a run with these faults.
// It returns the result of the last run. If the reference run has violations, Run stops there.
func Run(ctx context.Context, o Options, name string, faults ...Fault) (Result, error) {
	sc, ok := scenario.Find(name)
	if !ok {
		return Result{}, fmt.Errorf("unknown scenario %q", name)
	}
	o.Rigs = 1
	e, err := New(ctx, o)
	if err != nil {
		return Result{}, err
	}
	specs := []Spec{{Scenario: sc}}
	if len(faults) > 0 {
		specs = append(specs, Spec{Scenario: sc, Faults: faults})
	}
	var last Result
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err = e.Specs(ctx, slices.Values(specs), func(r Result) {
		last = r
		if len(r.Violations) > 0 || r.Err != nil {
			stop()
		}
	})
	return last, err
}

// Reference returns the result as a reference for other runs.
func (r Result) Reference() *Reference {
	return &Reference{State: r.State, Points: distinct(r.Points)}
}
