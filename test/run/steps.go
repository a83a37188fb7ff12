package main

import (
	"fmt"
	"slices"
)

// step is a part of a tier.
type step struct {
	name    string
	targets []string
}

// Names of the tiers. rest contains the steps of `make test-all` that `make test` does not have.
const (
	quick = "quick"
	rest  = "rest"
)

var tiers = map[string][]step{
	quick: {
		{"tools", []string{"tools-test"}},
		{"generated files and formatting", []string{"verify"}},
		{"unit tests and models", []string{"test-unit"}},
		{"programs", []string{"kube", "build"}},
		{"stories", []string{"test-stories"}},
		{"stories of other suites", []string{"test-suites"}},
	},
	rest: {
		{"all tools", []string{"tools"}},
		{"linters", []string{"lint"}},
		{"all stories", []string{"test-stories"}},
		{"all other suites", []string{"test-suites"}},
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
			s.targets = append(slices.Clone(s.targets), "TIER="+tier)
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("no tier given: the tiers are %s and %s", quick, rest)
	}
	return steps, nil
}
