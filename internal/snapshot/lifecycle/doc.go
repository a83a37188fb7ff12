// Package lifecycle describes the lifecycle of a snapshot in one table. Next maps an observation to
// the phase, the next step, the controller that takes it, the proofs that the step needs, and the
// message to the user. root_snapshot, leaf_snapshot and host_snapshot share the table, as the
// volumes' controllers share theirs (package volume/lifecycle). Each controller observes the
// snapshot that its request names, calls Next, and takes the step if it owns the step.
//
// The first row that meets all its conditions, and those of its section, applies. The conditions of
// host_snapshot's rows concern only the host. So host_snapshot and a member's controllers find the
// same row, although the latter observe more objects. internal/SNAPSHOTS.md is generated from the
// table.
//
// Next is pure. Its observations come from caches, which lag, so a step that destroys data first
// reads both clusters live (package proof).
package lifecycle
