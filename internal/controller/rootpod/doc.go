// Package rootpod is the kubelet of a virtual node as far as a Pod's life goes: it creates
// the leaf Pod, keeps its mutable fields current, deletes it when the root is deleted, and
// finishes the root when the leaf is gone. Package lifecycle decides. It writes leaf Pods,
// the root's Pushed condition, and the final deletion of roots. Everything else of a root's
// status is leaf_pod's.
//
// Caches may lag, so root_pod reads the root live before it creates or withdraws a leaf, as
// leaf_pod does before it fails a root, and each decides again. Whether a volume was mirrored
// for a claim whose leaf claim is gone is read live too.
package rootpod
