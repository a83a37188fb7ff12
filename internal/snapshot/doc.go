// Package snapshot describes the observed state of a snapshot (Observed): its objects in the host
// and in one member. Its functions are pure. Package observe reads observations from the caches,
// and package lifecycle determines the next step.
package snapshot
