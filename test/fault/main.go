// Command fault injects faults at each of Xylem's writes and judges the result. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xylem-io/xylem/test/fault/engine"
	"github.com/xylem-io/xylem/test/fault/scenario"
)

const usage = `go run ./test/fault COMMAND [flags]

  list       list the scenarios
  enumerate  run every scenario with both kinds of kill and an error at every write
  random     run scenarios with two random faults, for the duration of --for
  slice      run the short selection that is part of make test
  replay     repeat one run: --scenario NAME --fault KIND@POINT [--fault ...]
  mutants    add known defects to the manager, and check that an oracle finds each defect
  points     list the writes of each scenario in a run without faults`

// downtime is long enough for other controllers to act while the manager is down.
const downtime = 300 * time.Millisecond

var errUsage = errors.New(usage)

// command contains the values of the flags.
type command struct {
	engine.Options
	scenarios []scenario.Scenario
	faults    []engine.Fault
	kinds     []engine.Kind
	limit     time.Duration
	dumps     string
	record    string
	repeat    int
	skip      int
	mutations string
}

func main() {
	ctrl.SetLogger(logr.Discard()) // clients would log connection errors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fault:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	c, err := parse(args[0], args[1:])
	if err != nil {
		return err
	}
	switch args[0] {
	case "list":
		for _, sc := range c.scenarios {
			fmt.Printf("%-20s %s\n", sc.Name, sc.About)
		}
		return nil
	case "mutants":
		return c.mutants(ctx, c.mutations)
	case "enumerate", "random", "slice", "replay", "points":
		return c.run(ctx, args[0])
	}
	return errUsage
}

func parse(name string, args []string) (*command, error) {
	c := &command{Options: engine.Options{Progress: say}}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&c.Manager, "manager", "", "Path of the manager's binary. If empty, the manager is built from this tree.")
	flags.IntVar(&c.Rigs, "rigs", 5, "Number of concurrent runs, each on its own fleet (2 GiB).")
	flags.Uint64Var(&c.Seed, "seed", uint64(time.Now().Unix()), "Seed for all random choices.") //nolint:gosec // after 1970
	flags.DurationVar(&c.Downtime, "downtime", downtime, "Time until a killed manager is restarted.")
	flags.DurationVar(&c.Patience, "patience", 0, "Time that a run may take to settle (0: 150s).")
	flags.DurationVar(&c.limit, "for", 0, "Time after which no further runs are started (enumerate: 55m, random: 10m).")
	flags.StringVar(&c.dumps, "dumps", filepath.Join(os.TempDir(), "xylem-fault"), "Directory for the complete state at each failure.")
	flags.StringVar(&c.record, "record", "", "File to add the totals to, such as test/fault/runs.json.")
	flags.IntVar(&c.repeat, "repeat", 1, "replay: number of runs.")
	flags.IntVar(&c.skip, "skip", 0, "enumerate: number of runs to skip because an earlier command with the same seed has completed them.")
	flags.StringVar(&c.mutations, "mutation", "", "mutants: only these mutations, separated by commas.")
	names := flags.String("scenario", "", "Only these scenarios, separated by commas.")
	flags.Func("fault", "replay: a fault, as a failure prints it. The flag can be repeated.", func(s string) error {
		f, err := engine.ParseFault(s)
		c.faults = append(c.faults, f)
		return err
	})
	flags.Func("kinds", "enumerate: inject only these kinds of faults at every write, separated by commas; all means every kind.", func(s string) error {
		for kind := range strings.SplitSeq(s, ",") {
			found, err := engine.ParseKinds(kind)
			if err != nil {
				return err
			}
			c.kinds = append(c.kinds, found...)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case c.limit > 0:
	case name == "random":
		c.limit = 10 * time.Minute
	case name == "enumerate":
		c.limit = 55 * time.Minute // must take less than an hour on any machine
	}
	c.scenarios = scenario.All()
	if *names == "" {
		return c, nil
	}
	c.scenarios = nil
	for n := range strings.SplitSeq(*names, ",") {
		sc, ok := scenario.Find(n)
		if !ok {
			return nil, fmt.Errorf("unknown scenario %q: the list command prints all scenarios", n)
		}
		c.scenarios = append(c.scenarios, sc)
	}
	return c, nil
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// run executes the reference runs, and then the command's runs.
func (c *command) run(ctx context.Context, name string) error {
	if name == "slice" {
		c.scenarios = slices.DeleteFunc(c.scenarios, func(s scenario.Scenario) bool { return !s.Core })
	}
	if name == "replay" {
		c.Rigs = 1
	}
	e, err := engine.New(ctx, c.Options)
	if err != nil {
		return err
	}
	built := commit() // the commit of the manager's sources, even if the tree changes during the runs
	say("%s: seed %d, commit %s, %d rigs, %d scenarios", name, c.Seed, built, c.Rigs, len(c.scenarios))
	report := engine.NewReport(c.dumps, say)
	began := time.Now()
	// References first, then the runs that depend on them, on the same rigs.
	specs := func(yield func(engine.Spec) bool) {
		for spec := range e.WithReferences(ctx, c.scenarios, func() iter.Seq[engine.Spec] { return c.specs(e, name) }) {
			if c.limit > 0 && time.Since(began) > c.limit {
				say("the time limit of %s has passed: no further runs are started", c.limit)
				return
			}
			if !yield(spec) {
				return
			}
		}
	}
	failed := e.Specs(ctx, specs, report.Add)
	// Report an interrupted command, too.
	if name == "points" {
		for _, sc := range c.scenarios {
			say("%s", sc.Name)
			for _, p := range e.Points(sc.Name) {
				say("  %s", p)
			}
		}
	}
	fmt.Print("\n", report)
	if c.record != "" {
		failed = errors.Join(failed, record(c.record, name, built, c.Seed, report))
	}
	if n := report.Total.Violations + report.Total.Errors; n > 0 {
		failed = errors.Join(failed, fmt.Errorf("%s: %s", name, &report.Total))
	}
	return errors.Join(failed, ctx.Err())
}

// specs returns the runs of a command. The engine must have the references.
func (c *command) specs(e *engine.Engine, name string) iter.Seq[engine.Spec] {
	switch name {
	case "enumerate":
		all := e.Enumerate(c.scenarios, c.kinds...)
		all = all[min(max(c.skip, 0), len(all)):]
		say("enumerate: %d runs planned", len(all))
		return slices.Values(all)
	case "slice":
		return slices.Values(e.Slice(c.scenarios))
	case "random":
		return e.Pairs(c.Seed, c.scenarios)
	default:
		var all []engine.Spec
		for range c.repeat {
			// As in Enumerate, a run without faults requires a minute without writes.
			all = append(all, engine.Spec{Scenario: c.scenarios[0], Faults: c.faults, Minute: len(c.faults) == 0})
		}
		return slices.Values(all)
	}
}
