// Package snapshot describes the observed state of a snapshot (Observed), its objects in the host and in
// one member, and its lifecycle in one table. Only Observer reads the caches; everything else is pure.
//
// Observer reads observations of snapshots from the caches of the host and of one member,
// and maps events to requests for root_snapshot and leaf_snapshot. A request is the name of a host
// content. The name contains the VolumeSnapshot's UID, which is also in the leaves' stamps.
//
// The table maps an observation to
// the phase, the next step, the controller that takes it, the proofs that the step needs, and the
// message to the user. root_snapshot, leaf_snapshot and host_snapshot share the table, as the
// volumes' controllers share theirs (package volume/lifecycle). Each controller observes the
// snapshot that its request names, calls NextPlan, and takes the step if it owns the step.
//
// The first row that meets all its conditions, and those of its section, applies. The conditions of
// host_snapshot's rows concern only the host. So host_snapshot and a member's controllers find the
// same row, although the latter observe more objects. internal/SNAPSHOTS.md is generated from the
// table.
//
// Next is pure. Its observations come from caches, which lag, so a step that destroys data first
// reads both clusters live (package proof).
package snapshot
