// Package scenario has the scenarios during which faults are injected. Each waits until the
// clusters are settled, performs one action of a user or an admin, and checks for the expected end.
package scenario
