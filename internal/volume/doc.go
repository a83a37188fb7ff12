// Package volume has the life of a volume: what it looks like in the host and in one member
// (Snapshot), and what comes next (Next). root_pvc, root_pv, leaf_pv and host_volume share it.
// Each of them observes the volume that its request is about, asks Next, and takes the step if
// it is the step's owner. They decide nothing else on volumes.
//
// Next is pure. It reads two tables from top to bottom, and the first row that matches holds:
// one for promises without a disk, or with one that goes with its last Pod, then one for all
// volumes. A row has an owner, so that two controllers never act on one volume at the same
// time, and one never waits for another that does not act. internal/VOLUMES.md shows the
// tables, and is generated from them.
//
// A snapshot comes from caches, which lag. The rows say when to begin a step; a step that
// destroys data then reads both clusters live, and writes only with the evidence that these
// reads are (package proof). test/model runs the controllers through every state of a claim.
package volume
