// Package lifecycle describes the life of a snapshot in one table. Next maps an observation to the
// phase, the next step, the controller that takes it, the proofs that the step needs, and the
// message to the user. root_snapshot, leaf_snapshot and host_snapshot share the table, as the
// controllers of volumes share theirs (package volume/lifecycle). Each controller observes the
// snapshot of its request, calls Next, and takes the step if it owns it.
//
// The first row that meets all its conditions, and those of its section, applies. The conditions of
// host_snapshot's rows concern the host alone. So host_snapshot and a member's controllers, which
// observe more, find the same row. internal/SNAPSHOTS.md is generated from the table.
//
// Next is pure. Its observations come from caches, which lag, so a step that destroys data first
// reads both clusters live (package proof).
package lifecycle
