// Package leafnode sums the capacity of a member's nodes. Its controller leaf_node runs for
// each Link. It counts the nodes that are ready and schedulable, and subtracts the requests
// of all Pods except this host's, which the host's scheduler subtracts. It sums the member's
// caches when they change, at most every few seconds. virtual_node reports the sum on the
// Node.
package leafnode
