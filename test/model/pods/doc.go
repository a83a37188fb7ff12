// Package pods visits every state that a Pod with a claim and its leaf can reach, within bounds, as
// package model does for a claim and its volume.
//
// A world is the state of one Pod, its claim and the claim's host PV in the host, and of the leaf Pod and
// the leaf claim in a member, as API objects, and at most one kind of object whose cache lags. From each
// world, Check makes every possible move:
//
//   - a step of Xylem: one reconcile of the real root_pod, killed after its first write;
//   - a step of the other controllers, as rules: root_pvc places the claim and creates its leaf claim,
//     leaf_pv mirrors the volume, and leaf_pod mirrors the leaf's phase and ends a root whose leaf is gone;
//   - a step of Kubernetes: the scheduler nominates and binds, the member's kubelet starts and ends the
//     leaf, and API servers remove what is deleted;
//   - a disruption: a user deletes or creates the Pod or the claim, the scheduler chooses another member,
//     an importer selects a node for the claim, the member's admin deletes the leaf or the leaf claim, and a
//     cache stops.
//
// In the first world, the Pod has no node, or the user set spec.nodeName to the virtual node.
//
// It asserts that the containers of a Pod never start in a second leaf (I3), that a leaf is not deleted
// while its root may run in this member, and that a root is not removed while its leaf exists. Where
// nothing can move, no leaf is left without its root, and a Pod on the virtual node has a leaf or a
// reason (I6). Without disruptions, no world repeats, and root_pod never makes a write that changes nothing,
// unless a cache is stale (I5).
//
// Two limits of root_pod are known, and not findings. Nothing proves that a leaf ran if it started and was
// deleted in the member before root_pod recorded it, or if the member's admin deleted both the leaf and its
// bound claim before leaf_pv mirrored the claim's volume. Both need a manager that is killed meanwhile, or
// slower than the member's kubelet. The Pod then gets a second leaf.
package pods
