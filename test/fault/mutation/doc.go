// Package mutation adds defects to Xylem, to prove that the fault harness finds them. It has a
// mutation for each known class of defects in similar projects and in Xylem itself, and for each
// safeguard of an invariant.
//
// A mutation edits the product's source without changing the tree: `go build -overlay` builds the
// mutant. A unit test fails if an edit no longer matches the source, so the list stays up to date.
package mutation
