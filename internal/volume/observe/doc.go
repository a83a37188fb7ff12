// Package observe reads observations of volumes from the caches of the host and of one member.
// root_pv reconciles the host's PVs, and leaf_pv the member's. root_pvc reconciles claims, and adds
// the state of the member (rootpvc/observing).
//
// A cache may change between two reads. The observation contains the result of the last read, and a
// step that destroys data reads both clusters live (package proof).
package observe
