// Package observe reads observations of volumes from the caches of the host and of one member, for
// controllers whose requests are PVs: root_pv for those of the host, leaf_pv for those of the member.
// root_pvc, whose requests are claims, adds the state of the member (rootpvc/observing).
//
// A cache may change between two reads. The observation contains what was read last, and a step that
// destroys data reads both clusters live (package proof).
package observe
