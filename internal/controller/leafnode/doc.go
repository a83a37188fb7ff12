// Package leafnode adds up what a member's nodes have room for, for each Link:
// the controller leaf_node. It counts the nodes that are ready and schedulable,
// less what Pods request there that are not this host's; what this host's own
// request, its scheduler subtracts by itself. The sum is kept by the events of
// the member's caches, at a cost that does not grow with the member, and
// published to the fleet, from where virtual_node shows it on the Node.
package leafnode
