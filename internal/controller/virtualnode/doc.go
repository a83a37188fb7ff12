// Package virtualnode keeps the Node that represents a member in the host: the controller
// virtual_node, one request per registration. It is the only writer of these Nodes; the
// controller heartbeat writes their Leases.
//
// A Node is created once the member's identity is recorded in its registration. From then
// on, Xylem owns its own labels and taints, those that the registration asks for, and the
// status. Everything else on it stays: a cordon, taints of Kubernetes' node controllers, an
// admin's own labels. An annotation records what the registration asked for last, so that
// Xylem removes a label or taint that it no longer asks for, and keeps an admin's.
//
// Ready becomes False at once for a cause that does not pass by itself (rejected
// credentials, another identity, no ready node there), and after a grace period
// (--node-grace), as Kubernetes gives its own nodes, for one that may: a restart or a
// change of leader of the manager, and short network outages, must not make every Pod there
// unready.
//
// A Node is deleted when its registration is being deleted and no Pod of the host is bound
// to it, except those of DaemonSets, which are never pushed. If a registration was deleted
// without that (somebody removed its finalizer), this is no evidence that its Pods have
// ended: the Node stays, NotReady, until the last Pod is gone or the cluster is registered
// again under that name.
//
// The Pods of a member that is away are kept, unless the registration asks for eviction
// (spec.node.whenAway). The node lifecycle controller puts a NoExecute taint on every Node
// that is not Ready, and the Pods there are evicted when their tolerations end. No Node can
// opt out of that. So the Node stays Ready: the taint xylem.io/member-away keeps new Pods
// off, the condition xylem.io/MemberAway has the cause, and away_pod marks the Pods as not
// ready. Rejected: tolerations added at admission, when nobody knows yet where a Pod will
// run; patches of the Pods, which take the right to change any Pod of the host; and removing
// the taint, which that controller puts back.
package virtualnode
