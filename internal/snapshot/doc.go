// Package snapshot is what is observed of a snapshot: its content in the host, and what one
// member has of it (Observed). It is pure: package observe reads observations from the caches,
// and package lifecycle says what comes next.
package snapshot
