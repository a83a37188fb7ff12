// Package virtualnode manages the Node that represents a member in the host, and the objects that
// belong to it. It has three controllers:
//
//   - virtual_node runs on the leader and reconciles one registration for each request. It is the only
//     writer of the Nodes and their CSINodes. In each Link, a runnable publishes the member's capacity.
//   - csi_driver runs on the leader and manages two CSIDrivers.
//   - heartbeat runs on every replica and renews the Nodes' Leases.
//
// # Nodes
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
// (spec.node.awayPolicyOf). The node lifecycle controller adds a NoExecute taint to every Node
// that is not Ready, and Kubernetes evicts the Pods there when their tolerations expire. A
// Node cannot opt out of this. Xylem therefore keeps the Node Ready: the taint
// xylem.io/member-away keeps new Pods off, the condition xylem.io/MemberAway reports the
// cause, and away_pod marks the Pods as not ready.
//
// These alternatives were rejected: tolerations added at admission, because it is not known yet
// where the Pod will run; patches of the Pods, because they require the permission to change any
// Pod in the host; and removing the taint, because the node lifecycle controller adds it again.
//
// # Groups
//
// With spec.nodes, a member has a Node for each group of its nodes instead. Each Link divides the member's nodes by the rules, and
// publishes the groups with the member's capacity. While the groups are not known, for example because the member is away and the
// manager has just started, the Nodes stay as they are. The name of each Node ends in the name of the member's own Node, so a
// name alone shows to which member a Pod belongs, even after the Node is gone. The Node's annotation
// xylem.io/node-selector selects the group's nodes in the member, and its labels xylem.io/topology-... name the topologies of
// volumes that at least one of these nodes can use.
//
// A Node that loses its group is cordoned, and deleted once no Pods are bound to it. Until then, it stays Ready, because its Pods may
// still run: rules must not evict Pods. A Node whose nodes are all cordoned is cordoned too. The Node's own annotation
// records whether Xylem cordoned it, so that Xylem does not undo an admin's cordon.
//
// # Capacity
//
// The Node's capacity is the sum of the resources of the member's nodes that are ready and
// schedulable, minus the requests of all Pods on them, except for this host's Pods, which the host's
// scheduler subtracts. Each Link computes the sum from the member's caches when they change, at most
// once every few seconds.
//
// # CSINodes
//
// virtual_node creates a CSINode for each virtual node, as a kubelet does for its own node. From
// Kubernetes 1.37, if a CSIDriver has preventPodSchedulingIfMissing, the scheduler places a Pod with a
// volume of that driver only on nodes whose CSINode names the driver. Only the CSINodes of virtual
// nodes name csi.xylem.io and mock.csi.virtual-kubelet.io. A Pod whose promise is not fulfilled yet,
// and whose volume therefore has no node affinity, then cannot be placed on a host node.
//
// Xylem sets no allocatable.count in the CSINode, because it would limit the number of volumes. Xylem
// keeps a count that an admin sets, and the entries of other drivers. Kubernetes' garbage collector
// deletes the CSINode with its Node. If the CSINode cannot be written, or a foreign CSINode has its
// name, the Node's condition xylem.io/CSINode and an event report the problem, but only if the host's
// scheduler reads CSINodes.
//
// # CSIDrivers
//
// csi.xylem.io is the provisioner of Xylem's classes and the driver of volumes in members, and
// mock.csi.virtual-kubelet.io the driver of promises. No driver runs under these names. The first one
// makes the scheduler require a CSIStorageCapacity (storageCapacity), so it never selects a host node
// for a claim of a Xylem class in mirror mode. Both declare that volumes need no attachment
// (attachRequired). csi_driver sets preventPodSchedulingIfMissing last, because it would keep Pods with
// volumes off members whose CSINode does not exist yet. Earlier hosts drop the field: it is missing
// from the objects that they return, and csi_driver does not set it in these hosts.
//
// csi.xylem.io also contains the rules in spec.namespaces of all registrations
// (placement.PublishedNamespaceRules), for the admission policies on bindings and new Pods. The host's
// API server evaluates a policy once for each of its parameters, even for Pods that have nothing to do
// with members. With the registrations as parameters, 200 of them delayed each new Pod by 0.3 s to 2 s.
//
// # Leases
//
// A Lease shows that Xylem is alive, while virtual_node reports in the Node's conditions whether the
// member is. heartbeat therefore renews the Lease even while the member is down, and on replicas that
// are not the leader. Otherwise, a manager without a leader would look like an outage of every member,
// and the host would evict their Pods. Replicas share the work without communicating: a replica does
// not renew a Lease that another replica renewed recently. Before long, a single replica renews each
// Lease, and the others only check it.
package virtualnode
