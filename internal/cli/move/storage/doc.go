// Package storage changes the claims and volumes of a move in the host.
//
// Between reading an object and changing or deleting it, a Writer checks that no other run has taken
// over. The write has the object's resourceVersion as a precondition. A run that takes over changes
// the object before relying on it, so a delayed write of an earlier run fails.
package storage
