// Package reporting is what root_pvc reports to users: the condition Placed of root claims, at a
// limited rate, and events.
package reporting
