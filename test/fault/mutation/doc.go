// Package mutation puts defects into Xylem, to see that the fault harness finds
// them: each class that is known from Xylem's peers (its own issues and theirs),
// and the loss of each check that an invariant rests on.
//
// A mutation is an edit of the product's source that never touches the tree: the
// mutant is built with `go build -overlay`. An edit that no longer fits the source
// fails a unit test, so that the list follows the code.
package mutation
