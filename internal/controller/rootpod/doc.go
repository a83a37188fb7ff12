// Package rootpod acts as the kubelet of a virtual node for the lifecycle of Pods: it creates
// the leaf Pod, updates its mutable fields, deletes it when the root is deleted, and finishes
// the deletion of the root when the leaf is gone. Package lifecycle makes the decisions. The
// controller writes leaf Pods, the root's Pushed condition, and the final deletion of roots.
// leaf_pod writes the rest of a root's status.
//
// Caches may be stale, so root_pod reads the root live before it creates or withdraws a leaf,
// as leaf_pod does before it fails a root. Each then decides again. root_pod also reads live
// whether a volume was mirrored for a claim whose leaf claim is gone.
package rootpod
