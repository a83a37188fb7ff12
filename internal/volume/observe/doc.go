// Package observe reads observations of claims and volumes from the caches of the host and of one
// member. Observer is for controllers whose requests are PVs: root_pv for those of the host, leaf_pv
// for those of the member. ClaimObserver is for root_pvc, whose requests are claims. It also reads
// the member's classes, its namespace, the claim's Pods and the provisioner's events.
//
// A cache may change between two reads. The observation contains what was read last, and a step that
// destroys data reads both clusters live (package proof).
package observe
