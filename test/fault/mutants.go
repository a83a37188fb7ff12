package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xylem-io/xylem/test/controlplane/kubebin"
	"github.com/xylem-io/xylem/test/fault/engine"
	"github.com/xylem-io/xylem/test/fault/mutation"
	"github.com/xylem-io/xylem/test/fault/scenario"
)

// mutantPatience is how long a mutant may take to settle. It is shorter than the normal patience,
// because many mutants never settle.
const mutantPatience = 45 * time.Second

// verdict is the result of a mutant's run.
type verdict struct {
	mutation.Mutation
	found  []string // the invariant and the oracle of each violation
	err    error
	caught bool
}

// mutants builds each mutant, runs its scenario, and checks that an oracle reports a violation.
// Before that, the same runs must pass with the real manager.
func (c *command) mutants(ctx context.Context, only string) error {
	chosen := slices.DeleteFunc(mutation.All(), func(m mutation.Mutation) bool {
		return only != "" && !slices.Contains(strings.Split(only, ","), m.Name)
	})
	if len(chosen) == 0 {
		return fmt.Errorf("unknown mutation %q", only)
	}
	references, err := c.sound(ctx, chosen)
	if err != nil {
		return err
	}
	verdicts := make([]verdict, len(chosen))
	var printing, building sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.Rigs)
	for i, m := range chosen {
		group.Go(func() error {
			v := c.mutant(ctx, m, references, &building)
			printing.Lock()
			defer printing.Unlock()
			say("%s", v)
			verdicts[i] = v
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	missed := slices.DeleteFunc(verdicts, func(v verdict) bool { return v.caught })
	say("\n%d mutants, %d caught, %d not caught", len(chosen), len(chosen)-len(missed), len(missed))
	if len(missed) > 0 {
		return fmt.Errorf("%d mutants were not caught", len(missed))
	}
	return nil
}

// sound executes the reference runs of the mutants' scenarios and the runs with the mutants'
// faults, with the real manager. A fault that causes a violation there would prove nothing about a
// mutant.
func (c *command) sound(ctx context.Context, chosen []mutation.Mutation) (map[string]*engine.Reference, error) {
	e, err := engine.New(ctx, c.Options)
	if err != nil {
		return nil, err
	}
	report := engine.NewReport(c.dumps, say)
	var scenarios []scenario.Scenario
	var faulty []engine.Spec
	for _, m := range chosen {
		spec, err := specOf(m)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(scenarios, func(s scenario.Scenario) bool { return s.Name == m.Scenario }) {
			scenarios = append(scenarios, spec.Scenario)
		}
		if len(spec.Faults) > 0 {
			faulty = append(faulty, spec)
		}
	}
	say("unchanged manager: %d scenarios with %d faults", len(scenarios), len(faulty))
	all := e.WithReferences(ctx, scenarios, func() iter.Seq[engine.Spec] { return slices.Values(faulty) })
	if err := e.Specs(ctx, all, report.Add); err != nil {
		return nil, err
	}
	if n := report.Total.Violations + report.Total.Errors; n > 0 {
		return nil, fmt.Errorf("unchanged manager: %s", &report.Total)
	}
	references := map[string]*engine.Reference{}
	for _, s := range scenarios {
		references[s.Name] = e.Reference(s.Name)
	}
	return references, ctx.Err()
}

func specOf(m mutation.Mutation) (engine.Spec, error) {
	sc, ok := scenario.Find(m.Scenario)
	if !ok {
		return engine.Spec{}, fmt.Errorf("mutation %s: unknown scenario %q", m.Name, m.Scenario)
	}
	spec := engine.Spec{Scenario: sc}
	if m.Fault != "" {
		fault, err := engine.ParseFault(m.Fault)
		if err != nil {
			return spec, fmt.Errorf("mutation %s: %w", m.Name, err)
		}
		spec.Faults = []engine.Fault{fault}
	}
	return spec, nil
}

// mutant builds a mutant and runs its scenario on its own rig. Builds run one at a time, because
// each uses the whole machine.
func (c *command) mutant(ctx context.Context, m mutation.Mutation, references map[string]*engine.Reference, building *sync.Mutex) (v verdict) {
	v.Mutation = m
	spec, err := specOf(m)
	if err != nil {
		v.err = err
		return v
	}
	dir, err := os.MkdirTemp("", "xylem-mutants-")
	if err != nil {
		v.err = err
		return v
	}
	defer func() { v.err = errors.Join(v.err, os.RemoveAll(dir)) }()
	root, err := kubebin.Root()
	if err != nil {
		v.err = err
		return v
	}
	building.Lock()
	binary, err := m.Build(ctx, root, dir)
	building.Unlock()
	if err != nil {
		v.err = err
		return v
	}
	o := c.Options
	o.Manager, o.References, o.Rigs, o.Patience = binary, references, 1, mutantPatience
	e, err := engine.New(ctx, o)
	if err != nil {
		v.err = err
		return v
	}
	v.err = e.Specs(ctx, slices.Values([]engine.Spec{spec}), func(r engine.Result) {
		for _, violation := range r.Violations {
			v.found = append(v.found, violation.Invariant+" "+violation.Oracle)
			v.caught = v.caught || slices.Contains(m.Caught, violation.Invariant)
		}
		if len(r.Violations) == 0 {
			v.err = r.Err
		}
	})
	slices.Sort(v.found)
	v.found = slices.Compact(v.found)
	return v
}

func (v verdict) String() string {
	what := "NOT CAUGHT"
	if v.caught {
		what = "caught by " + strings.Join(v.found, ", ")
	} else if v.err != nil {
		what += fmt.Sprintf(": %v", v.err)
	}
	return fmt.Sprintf("%-20s %-18s %-70s %s", v.Name, v.Scenario, v.Fault, what)
}
