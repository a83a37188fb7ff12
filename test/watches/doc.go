// Package watches proves, for every controller, that what it reads is among what it
// watches: a controller that decides on an object that it does not watch is not run again
// when that object changes, and what it decided stays wrong until something else happens.
//
// The proof is static. It type-checks the source of internal/ and follows, from each
// controller's Reconcile, every call that may be made, with the reader and the kind that it
// is created with: a read is a Get or List of a cache. A reader is a struct field, and readers
// (sides.go) says whose cache it is. The watches come from the function that registers the
// controller. A reader or a kind that cannot be told is a failure of the test, so that
// nothing is left out in silence. Live reads are proofs, not observations: they do not count.
package watches
