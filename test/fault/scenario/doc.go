// Package scenario contains the scenarios during which faults are injected. Each waits until the
// clusters have settled, acts as a user or an admin, and checks the end state.
package scenario
