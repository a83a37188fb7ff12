package states

import (
	"slices"
	"strings"
)

// Fact is a condition of a row.
type Fact[S any] struct {
	text, opposite string
	is             func(*S) bool
}

// If returns a fact, with descriptions of the fact and of its negation. The latter is "" if no row
// uses the negation.
func If[S any](text, opposite string, is func(*S) bool) Fact[S] { return Fact[S]{text, opposite, is} }

// Not returns the negation of a fact.
func Not[S any](f Fact[S]) Fact[S] {
	return Fact[S]{f.opposite, f.text, func(s *S) bool { return !f.is(s) }}
}

// All returns the fact that all given facts are true.
func All[S any](facts ...Fact[S]) Fact[S] {
	return Fact[S]{strings.Join(texts(facts), " and "), "", func(s *S) bool { return met(facts, s) }}
}

// Any returns the fact that at least one of the given facts is true.
func Any[S any](facts ...Fact[S]) Fact[S] {
	return Fact[S]{strings.Join(texts(facts), ", or "), "", func(s *S) bool {
		return slices.ContainsFunc(facts, func(f Fact[S]) bool { return f.is(s) })
	}}
}

// Text describes the fact.
func (f Fact[S]) Text() string { return f.text }

func met[S any](facts []Fact[S], s *S) bool {
	return !slices.ContainsFunc(facts, func(f Fact[S]) bool { return !f.is(s) })
}

func texts[S any](facts []Fact[S]) []string {
	all := make([]string, 0, len(facts))
	for _, f := range facts {
		all = append(all, f.text)
	}
	return all
}
