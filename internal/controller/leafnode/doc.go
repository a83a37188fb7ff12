// Package leafnode sums the capacity of a member's nodes, for each Link: the controller
// leaf_node. It counts the nodes that are ready and schedulable, minus the requests of Pods
// that are not this host's; the host's scheduler subtracts this host's own. It sums what the
// member's caches have when that changes, every few seconds at most. virtual_node shows it on
// the Node.
package leafnode
