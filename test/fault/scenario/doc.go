// Package scenario is what is done while faults are injected: each scenario
// brings the clusters to rest, then does one thing that a user or an admin would,
// and says how to tell that it has come to its end.
package scenario
