// Package observe reads observations of claims and volumes from the caches of the host and of one
// member. Observer is for controllers that begin with a PV: root_pv with one of the host, leaf_pv
// with one of the member. ClaimObserver is for root_pvc, which begins with a claim, and also needs
// to know what the member has to say to it: its classes, its namespace, the claim's Pods and the
// provisioner's events.
//
// A cache may change between two reads. What the observer decides on is what it read last, and a
// step that destroys data reads both clusters live (package proof).
package observe
