package main

import "fmt"

// step is a part of a tier.
type step struct {
	name    string
	targets []string
	// parallel is whether the targets run at the same time. An earlier step must make what several of them need.
	parallel bool
	// tier is the tier whose stories the targets run.
	tier string
}

// Names of the tiers. rest contains the steps of `make test-all` that `make test` does not have.
const (
	quick = "quick"
	rest  = "rest"
)

var tiers = map[string][]step{
	quick: {
		{name: "tools", targets: []string{"tools-test"}},
		{name: "generated files and formatting", targets: []string{"verify"}},
		{name: "unit tests and models", targets: []string{"test-unit"}},
		{name: "programs", targets: []string{"kube", "build"}},
		{name: "stories", targets: []string{"test-stories"}},
		{name: "stories of other suites", targets: []string{"test-suites"}},
	},
	rest: {
		{name: "all tools", targets: []string{"tools", "kube", "build"}},
		{name: "linters", targets: []string{"lint"}},
		// Most suites wait more than they compute.
		{name: "all stories and other suites", targets: []string{"test-stories", "test-suites"}, parallel: true},
	},
}

// stepsOf returns the steps of tiers, with the tier's name for the stories.
func stepsOf(chosen []string) ([]step, error) {
	var steps []step
	for _, tier := range chosen {
		if tiers[tier] == nil {
			return nil, fmt.Errorf("unknown tier %q: the tiers are %s and %s", tier, quick, rest)
		}
		for _, s := range tiers[tier] {
			s.tier = tier
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("no tier given: the tiers are %s and %s", quick, rest)
	}
	return steps, nil
}
