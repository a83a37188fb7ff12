// Package watches proves that every controller watches what it reads. If a controller reads an
// object that it does not watch, a change to that object does not enqueue a request, and the
// controller's decision stays wrong until another event.
//
// The proof is static. It type-checks the source of internal/ and follows every possible call from
// each controller's Reconcile. A read is a Get or List from a cache. The reader is a struct field,
// and readers (sides.go) maps each field to its cache. The watches come from the function that
// registers the controller. The test fails if it cannot determine a reader or a kind, so that it
// never silently omits a read. Live reads do not count, because they are proofs and not
// observations.
package watches
