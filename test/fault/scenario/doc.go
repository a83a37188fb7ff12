// Package scenario has the scenarios during which faults are injected. Each brings the clusters to
// rest, then does one thing that a user or an admin would do, and checks for the expected end.
package scenario
