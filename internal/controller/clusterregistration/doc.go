// Package clusterregistration makes a member of the cluster that a
// ClusterRegistration leads to, and lets go of it in order.
//
// It reads the kubeconfig's Secret and tells the fleet what to link; records
// the member's identity at the first connection and refuses another one later;
// shows in conditions how things stand and what to do; and, when the
// registration is deleted, has the Pods there evicted, the claims withdrawn or
// waited for, and the virtual node removed, before it drops its finalizer.
package clusterregistration
