package main

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settings are the values of the flags.
type settings struct {
	scenarios []string
	quick     bool
	out       string
	// repeats is the number of repeats of each part. The report shows their spread.
	repeats int
	// qps is the request limit of the control planes' clients. Xylem's clients have no limit.
	qps int

	rate     float64
	rateFor  time.Duration
	sizes    sizes
	churn    float64
	churnFor time.Duration
	members  int // for scale
	each     int
	volumes  int
	memory   string
	rest     time.Duration
	// quiet is how long queues must be empty for the manager to count as idle.
	quiet  time.Duration
	apart  int // number of members for isolation
	others int // Pods for foreign
	// admissions is the number of requests of each kind for admission.
	admissions int
	profile    bool
}

// size is the size of a burst.
type size struct{ claims, members int }

func (s size) String() string { return fmt.Sprintf("%d:%d", s.claims, s.members) }

// sizes is the value of a flag: a comma-separated list of claims:members.
type sizes []size

func (s *sizes) String() string {
	all := make([]string, 0, len(*s))
	for _, one := range *s {
		all = append(all, one.String())
	}
	return strings.Join(all, ",")
}

func (s *sizes) Set(text string) error {
	*s = nil
	for part := range strings.SplitSeq(text, ",") {
		claims, members, ok := strings.Cut(part, ":")
		c, err := strconv.Atoi(claims)
		m, err2 := strconv.Atoi(members)
		if !ok || err != nil || err2 != nil || c < 1 || m < 1 {
			return fmt.Errorf("%q: want claims:members, for example 1000:2", part)
		}
		*s = append(*s, size{c, m})
	}
	return nil
}

func parse(args []string) (settings, error) {
	s := settings{sizes: sizes{plainOfTheGoal, burstOfTheGoal, {5000, 4}}}
	quick := slices.Contains(args, "--quick") || slices.Contains(args, "-quick")
	// value returns the default for a full run or for a quick one.
	value := func(whole, short int) int {
		if quick {
			return short
		}
		return whole
	}
	if quick {
		s.sizes = sizes{{20, 2}}
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Usage = func() {
		names := make([]string, 0, len(scenarios))
		for _, one := range scenarios {
			names = append(names, one.name)
		}
		fmt.Fprintf(flags.Output(), "go run ./test/bench [flags] [SCENARIO...]\n\nscenarios: %s. By default, all run.\n\n", strings.Join(names, ", "))
		flags.PrintDefaults()
	}
	seconds := func(whole, short int) time.Duration { return time.Duration(value(whole, short)) * time.Second }
	flags.BoolVar(&s.quick, "quick", false, "Run all scenarios at small sizes, in less than three minutes. The figures are not meaningful.")
	flags.StringVar(&s.out, "out", filepath.Join("dist", "bench"), "Directory for the results.")
	flags.IntVar(&s.repeats, "repeats", value(3, 1), "Number of repeats of each part of latency, burst and isolation.")
	flags.IntVar(&s.qps, "qps", 2000, "Maximum requests per second of each control plane component and CSI sidecar.")
	flags.Float64Var(&s.rate, "rate", 10, "latency, isolation: claims per second, each with a Pod.")
	flags.DurationVar(&s.rateFor, "rate-for", seconds(60, 2), "latency, isolation: duration.")
	flags.Var(&s.sizes, "bursts", "burst: comma-separated list of claims:members, the numbers of claims created at once and of members.")
	flags.Float64Var(&s.churn, "churn-rate", 5, "churn: number of claims that are created, expanded and deleted per second.")
	flags.DurationVar(&s.churnFor, "churn-for", seconds(600, 4), "churn: duration.")
	flags.IntVar(&s.members, "scale-members", value(24, 2), "scale: number of members, with only an API server and etcd.")
	flags.IntVar(&s.each, "scale-each", value(1000, 50), "scale: volumes in each member when the restart is measured.")
	flags.IntVar(&s.volumes, "scale-volumes", value(50_000, 100), "scale: volumes in all members when memory is measured.")
	flags.StringVar(&s.memory, "scale-memory", "", "scale: the manager's GOMEMLIMIT, for example 922MiB, which is 90% of the chart's memory limit.")
	flags.DurationVar(&s.rest, "rest", seconds(60, 10), "Duration of the measurement of the idle manager.")
	flags.DurationVar(&s.quiet, "quiet", seconds(2, 1), "Time that queues must be empty for the manager to count as idle.")
	flags.IntVar(&s.apart, "isolation-members", value(3, 2), "isolation: number of members, one of which is black-holed.")
	flags.IntVar(&s.others, "foreign-pods", value(10_000, 200), "foreign: number of the host's Pods, and of the member's, with which Xylem has nothing to do.")
	flags.IntVar(&s.admissions, "admissions", value(400, 20), "admission: number of requests of each kind.")
	flags.BoolVar(&s.profile, "profile", false, "Write CPU and heap profiles of the manager next to the results.")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.scenarios = flags.Args()
	for _, one := range scenarios {
		if flags.NArg() == 0 {
			s.scenarios = append(s.scenarios, one.name)
		}
	}
	return s, s.check()
}

func (s settings) check() error {
	for _, name := range s.scenarios {
		if !slices.ContainsFunc(scenarios, func(one scenario) bool { return one.name == name }) {
			return fmt.Errorf("unknown scenario %q: -h lists all scenarios", name)
		}
	}
	if s.repeats < 1 || s.rate <= 0 || s.churn <= 0 || s.members < 1 || s.apart < 2 || s.others < 1 || s.admissions < 1 || s.rest <= 0 || s.quiet < time.Second/2 || s.quiet > stall || s.volumes < s.members*s.each {
		return errors.New("repeats, rates, members, --foreign-pods, --admissions and --rest must be positive, --quiet must be between half a second and two minutes, isolation needs at least two members, and --scale-volumes must be at least --scale-members times --scale-each")
	}
	return nil
}
