// Package rootpod is the kubelet of a virtual node as far as a Pod's life goes:
// it makes the leaf Pod, keeps what may change of it current, deletes it when
// the root is deleted, and finishes the root when the leaf is gone.
//
// A Pod whose unbound claims wait in the member for a consumer is pushed before
// the host has bound it, since it is that consumer: see mayGoEarly.
//
// It writes leaf Pods, the root's Pushed condition, and the final deletion of
// roots. All else of a root's status is leaf_pod's.
package rootpod
