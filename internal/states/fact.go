package states

import (
	"slices"
	"strings"
)

// Fact is a condition of a row.
type Fact[S any] struct {
	text, opposite string
	holds          func(*S) bool
}

// NewFact returns a fact, with descriptions of the fact and of its negation. The latter is "" if no row
// uses the negation.
func NewFact[S any](text, opposite string, is func(*S) bool) Fact[S] {
	return Fact[S]{text, opposite, is}
}

// NegateFact returns the negation of a fact.
func NegateFact[S any](f Fact[S]) Fact[S] {
	return Fact[S]{f.opposite, f.text, func(s *S) bool { return !f.holds(s) }}
}

// AllFacts returns the fact that all given facts are true.
func AllFacts[S any](facts ...Fact[S]) Fact[S] {
	return Fact[S]{strings.Join(factTexts(facts), " and "), "", func(s *S) bool { return allFactsHold(facts, s) }}
}

// AnyFact returns the fact that at least one of the given facts is true.
func AnyFact[S any](facts ...Fact[S]) Fact[S] {
	return Fact[S]{strings.Join(factTexts(facts), ", or "), "", func(s *S) bool {
		return slices.ContainsFunc(facts, func(f Fact[S]) bool { return f.holds(s) })
	}}
}

// Description describes the fact.
func (f Fact[S]) Description() string { return f.text }

func allFactsHold[S any](facts []Fact[S], s *S) bool {
	return !slices.ContainsFunc(facts, func(f Fact[S]) bool { return !f.holds(s) })
}

func factTexts[S any](facts []Fact[S]) []string {
	all := make([]string, 0, len(facts))
	for _, f := range facts {
		all = append(all, f.text)
	}
	return all
}
