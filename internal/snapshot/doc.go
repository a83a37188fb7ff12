// Package snapshot describes the observed state of a snapshot: its objects in the host and in one
// member (Observed). It is pure. Package observe reads observations from the caches, and package
// lifecycle determines the next step.
package snapshot
