// Package virtualnode manages the Node that represents a member in the host. Its controller
// virtual_node reconciles one registration for each request and is the only writer of these
// Nodes. The controller heartbeat writes their Leases.
//
// Xylem creates a Node once the member's identity is recorded in its registration. It then owns its
// own labels and taints, those in the registration, and the status. It does not change anything
// else, such as a cordon, taints of Kubernetes' node controllers, or an admin's labels. An
// annotation records the labels and taints that the registration had last, so that Xylem removes
// those that the registration no longer has and keeps those of an admin.
//
// A member is away immediately if the problem does not disappear without action: rejected
// credentials, another identity, or no ready node. If the problem may disappear, the member is away
// only after a grace period (--node-grace), as for ordinary nodes. A restart of the manager, a new
// leader, or a short network outage must not make every Pod unready.
//
// Xylem deletes a Node when its registration is being deleted and none of the host's Pods are bound
// to it, except those of DaemonSets, which are never pushed. If somebody deletes the Node before, Xylem
// creates it again: the host's Pod garbage collector deletes the Pods of a missing Node, and nobody
// would then have to confirm the deregistration. If a registration is gone without
// deregistration, because someone removed its finalizer, this does not prove that its Pods have
// ended. The Node then remains and is reported as away until the last Pod is gone or the cluster is
// registered again under that name.
//
// The Pods of an away member are kept, unless the registration requests eviction
// (spec.node.whenAway). The node lifecycle controller adds a NoExecute taint to every Node
// that is not Ready, and Kubernetes evicts the Pods there when their tolerations expire. A
// Node cannot opt out of this. Xylem therefore keeps the Node Ready: the taint
// xylem.io/member-away keeps new Pods off, the condition xylem.io/MemberAway reports the
// cause, and away_pod marks the Pods as not ready.
//
// These alternatives were rejected: tolerations added at admission, because it is not known yet
// where the Pod will run; patches of the Pods, because they require the permission to change any
// Pod in the host; and removing the taint, because the node lifecycle controller adds it again.
package virtualnode
