// Package leafnode sums the capacity of a member's nodes, for each Link: the controller
// leaf_node. It counts the nodes that are ready and schedulable, minus the requests of Pods
// that are not this host's; the host's scheduler subtracts this host's own. Events of the
// member's caches keep the sum current, at a cost that does not grow with the member.
// virtual_node shows it on the Node.
package leafnode
