// Package rootpod is the kubelet of a virtual node as far as a Pod's life goes: it creates
// the leaf Pod, keeps its mutable fields current, deletes it when the root is deleted, and
// finishes the root when the leaf is gone. It writes leaf Pods, the root's Pushed
// condition, and the final deletion of roots. Everything else of a root's status is
// leaf_pod's.
//
// # Early push
//
// A WaitForFirstConsumer class in the member waits for a Pod. So Xylem creates the leaf Pod
// before the host has bound the root (mayGoEarly). Its containers may start shortly before
// the host shows the Pod as scheduled. The Pod's nomination shows that the scheduler wants
// it there. A scheduler that waited for a volume in vain can lose its next nomination
// (podstatus.NominationLost); then, and with schedulers that do not nominate, rootpod checks
// the Pod itself.
//
// # Ran once
//
// The condition xylem.io/Pushed records the UID of the leaf that runs for a root. Such a
// root never gets another leaf; leaf_pod ends it when the leaf is gone. Caches may lag, so
// root_pod reads the root live before it creates a leaf, leaf_pod before it fails a root,
// and each decides again. If a restored member runs the leaf of a root that has ended or is
// gone, root_pod deletes that leaf.
//
// root_pod withdraws an early leaf that is gone only if it cannot have started: a claim was
// not bound in the member, neither by its leaf claim nor, if that is gone as well, by a
// live read of the host PV that mirrors its volume. One write lies between the leaf's
// creation and the record: a leaf that vanishes just then, while the manager is killed, is
// created again.
package rootpod
