// Package rootpod acts as the kubelet of a virtual node for the lifecycle of Pods: it creates the
// leaf Pod, updates its mutable fields, deletes it when the root is deleted, and finishes the
// deletion of the root when the leaf is gone. Package lifecycle makes the decisions. The controller
// writes leaf Pods and the root's Pushed condition, and makes the final deletion of the root.
// leaf_pod writes the rest of a root's status.
//
// Caches may be stale. root_pod therefore reads the root live and decides again before it creates
// or withdraws a leaf, and leaf_pod does the same before it fails a root. The root's condition records
// whether a leaf ran. So before root_pod marks a root as withdrawn, live reads must show that the leaf
// is gone and that one of its claims was never bound; before it reports a problem, that no leaf ran.
//
// Its part triggers lists the events of both clusters to which root_pod reacts, and maps each event to
// the Pods that it concerns. A Pod is enqueued by the name that root and leaf share.
package rootpod
