// Package virtualnode keeps the Node that stands for a member in the host: the
// controller virtual_node, one request per registration. It is the only writer
// of these Nodes; their Leases are the controller heartbeat's.
//
// A Node is made once the member's identity is recorded in its registration.
// From then on Xylem owns its own labels and taints, those that the
// registration asks for, and the status. Everything else on it is left alone: a
// cordon, taints of Kubernetes' node controllers, an admin's own labels. What
// the registration asked for last is remembered in an annotation, so that a
// label or taint that it no longer asks for goes, and an admin's stays.
//
// Ready goes False at once for a cause that does not pass by itself (refused
// credentials, another identity, no ready node there), and after a grace, as
// Kubernetes gives its own nodes, for one that may: the moments after a restart
// or a handover of the manager, and short outages of the network, must not make
// every Pod there unready.
//
// A Node goes when its registration is being deleted and none of the host's
// Pods is bound to it but those of DaemonSets, which are never pushed. If a
// registration has vanished without that (somebody took its finalizer off),
// this is no evidence that its Pods have: the Node stays, NotReady, until the
// last Pod is gone or the cluster is registered again under that name.
package virtualnode
