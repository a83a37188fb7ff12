// Package observe reads observations of claims and volumes from the caches of the host and of one member.
// A request names a claim (root_pvc), a host PV (root_pv) or a leaf PV (leaf_pv). Whichever it is, the
// observation of the volume has the same fields, so all three controllers plan the same step for it.
// Each then takes only its own steps.
//
// If two host PVs represent one leaf PV, each has its own observation. The left-over leaf claim of an
// earlier root has its own observation, too: the volume that it names belongs to another claim.
//
// A cache may change between two reads. The observation contains the result of the last read, and a
// step that destroys data reads both clusters live (package proof).
package observe
