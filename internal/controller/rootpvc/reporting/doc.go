// Package reporting contains root_pvc's reports to users: it sets the condition Placed of root
// claims, at a limited rate, and emits events.
package reporting
