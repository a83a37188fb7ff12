// Package lifecycle is the life of a snapshot, as one table: Next maps an observation to the
// phase, the next step, the controller that takes it, the proofs that the step needs, and the
// message to the user. root_snapshot, leaf_snapshot and host_snapshot share it, as the
// controllers of volumes share that of volumes (package volume/lifecycle). Each of them observes
// what its request is about, asks Next, and takes the step if it is the step's owner.
//
// The first row whose conditions, and those of its section, are all met holds. host_snapshot owns
// rows whose conditions are about the host alone, so that it and a member's controllers, which
// observe more, come to the same row. internal/SNAPSHOTS.md shows the table, and is generated
// from it.
//
// Next is pure, and its observation comes from caches, which lag. A step that destroys data reads
// both clusters live, and writes only with the evidence that these reads are (package proof).
package lifecycle
