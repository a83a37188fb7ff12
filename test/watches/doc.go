// Package watches proves that every controller watches what it reads. A controller that decides
// based on an object that it does not watch is not enqueued when that object changes, and its
// decision stays wrong until another event.
//
// The proof is static. It type-checks the source of internal/ and follows every possible call from
// each controller's Reconcile, with its reader and kind. A read is a Get or List of a cache. A
// reader is a struct field, and readers (sides.go) has the cache to which it belongs. The watches
// come from the function that registers the controller. The test fails if a reader or a kind cannot
// be determined, so that it never silently omits a read. Live reads do not count, because they are
// proofs and not observations.
package watches
