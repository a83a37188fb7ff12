package engine

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/xylem-io/xylem/test/fault/scenario"
)

// References returns the specs of the reference runs, which have no faults.
func References(scenarios []scenario.Scenario) []Spec {
	specs := make([]Spec, 0, len(scenarios))
	for _, sc := range scenarios {
		specs = append(specs, Spec{Scenario: sc})
	}
	return specs
}

// Enumerate returns these runs:
//   - every write of every scenario with both kinds of kill;
//   - every write with an error. The kinds of errors alternate, and each run has two errors, half
//     a scenario apart;
//   - for every scenario, restores of the host and of a member, while the manager runs and while it
//     is dead, each at a different write;
//   - every scenario without a fault, followed by a minute without writes. These runs mostly wait,
//     so they are spread among the others.
//
// The seed determines the order. A time limit therefore omits some runs of each type. If kinds are
// given, Enumerate instead returns every write with each of these. The engine must have the
// references.
func (e *Engine) Enumerate(scenarios []scenario.Scenario, kinds ...Kind) []Spec {
	var deaths, errs, rests []Spec
	turn := 0
	for _, sc := range scenarios {
		reference := e.Reference(sc.Name)
		if reference == nil {
			continue
		}
		if len(kinds) > 0 {
			deaths = append(deaths, atEach(sc, reference.Points, kinds)...)
			continue
		}
		deaths = append(deaths, atEach(sc, reference.Points, Kills)...)
		faults := make([]Fault, 0, len(reference.Points))
		kinds := errorsOf(reference.Points)
		for _, point := range reference.Points {
			faults = append(faults, Fault{kinds[turn%len(kinds)], point})
			turn++
		}
		errs = append(errs, inPairs(sc, faults)...)
		errs = append(errs, restores(sc, reference.Points)...)
		rests = append(rests, Spec{Scenario: sc, Minute: true})
	}
	all := slices.Concat(deaths, errs)
	slices.SortStableFunc(all, func(a, b Spec) int { return cmp.Compare(e.rank(a), e.rank(b)) })
	return spread(rests, all)
}

// errorsOf returns the kinds of errors that can affect a scenario with these writes.
func errorsOf(points []Point) []Kind {
	if slices.ContainsFunc(points, func(p Point) bool { return strings.Contains(p.Key, "/volumesnapshot") }) {
		return slices.Concat(OfSnapshots, Errors)
	}
	return Errors
}

// rank returns a run's place in the order. It depends only on the seed and the run.
func (e *Engine) rank(spec Spec) uint64 {
	hash := fnv.New64a()
	fmt.Fprint(hash, e.options.Seed, spec.Command())
	return hash.Sum64()
}

// atEach returns a run for each kind of fault at every point.
func atEach(sc scenario.Scenario, points []Point, kinds []Kind) []Spec {
	var specs []Spec
	for _, point := range points {
		for _, kind := range kinds {
			specs = append(specs, Spec{Scenario: sc, Faults: []Fault{{kind, point}}})
		}
	}
	return specs
}

// restores returns a run of a scenario for each kind of restore. The restores happen at writes that
// are evenly spaced over the scenario.
func restores(sc scenario.Scenario, points []Point) []Spec {
	if len(points) == 0 {
		return nil
	}
	specs := make([]Spec, 0, len(Restores))
	for i, kind := range Restores {
		specs = append(specs, Spec{Scenario: sc, Faults: []Fault{{kind, points[(i+1)*len(points)/(len(Restores)+1)]}}})
	}
	return specs
}

// inPairs returns runs that combine a fault from the first half of the list with one from the
// second.
func inPairs(sc scenario.Scenario, faults []Fault) []Spec {
	var specs []Spec
	half := (len(faults) + 1) / 2
	for i, f := range faults[:half] {
		pair := []Fault{f}
		if half+i < len(faults) {
			pair = append(pair, faults[half+i])
		}
		specs = append(specs, Spec{Scenario: sc, Faults: pair})
	}
	return specs
}

// spread returns all specs, with few distributed evenly among many. The first spec is one of few.
func spread(few, many []Spec) []Spec {
	all := make([]Spec, 0, len(few)+len(many))
	put := 0
	for i, spec := range few {
		next := i * len(many) / len(few)
		all = append(all, many[put:next]...)
		all = append(all, spec)
		put = next
	}
	return append(all, many[put:]...)
}

// Slice returns a short selection from Enumerate. For the core scenarios, it has a kill at every
// fourth write, and one error of each kind at the other writes. It has no restores, because each
// would occupy a rig of its own.
func (e *Engine) Slice(scenarios []scenario.Scenario) []Spec {
	var specs []Spec
	kind := 0
	for _, sc := range scenarios {
		reference := e.Reference(sc.Name)
		if !sc.Core || reference == nil {
			continue
		}
		for i, point := range reference.Points {
			if i%4 == 0 {
				specs = append(specs, Spec{Scenario: sc, Faults: []Fault{{KillAfter, point}}})
			} else if kind < len(Errors) {
				specs = append(specs, Spec{Scenario: sc, Faults: []Fault{{Errors[kind], point}}})
				kind++
			}
		}
	}
	return specs
}

// Pairs returns an endless sequence of runs with two faults each, at random writes of the
// scenarios. In a third of the runs, the second fault is moved to the next write with its key,
// which often occurs only because of the first fault.
func (e *Engine) Pairs(seed uint64, scenarios []scenario.Scenario) iter.Seq[Spec] {
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // to be replayed, not to be secret
	return func(yield func(Spec) bool) {
		for {
			sc := scenarios[random.IntN(len(scenarios))]
			reference := e.Reference(sc.Name)
			if reference == nil || len(reference.Points) == 0 {
				return
			}
			first, second := someFault(random, reference.Points), someFault(random, reference.Points)
			if random.IntN(3) == 0 || second.Point == first.Point {
				second.Point.N++
			}
			if !yield(Spec{Scenario: sc, Faults: []Fault{first, second}}) {
				return
			}
		}
	}
}

// someFault returns a random fault. Three in four are kills.
func someFault(random *rand.Rand, points []Point) Fault {
	kinds := errorsOf(points)
	if random.IntN(4) > 0 {
		kinds = Kills
	}
	return Fault{kinds[random.IntN(len(kinds))], points[random.IntN(len(points))]}
}
