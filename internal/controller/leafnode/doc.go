// Package leafnode computes the capacity of a member from its nodes. Its controller leaf_node runs
// for each Link. It sums the resources of the nodes that are ready and schedulable, and subtracts
// the requests of all Pods on them, except for this host's Pods, which the host's scheduler
// subtracts. It computes the sum from the member's caches when they change, at most once every few
// seconds. virtual_node reports the sum on the Node.
package leafnode
