// Package clusterregistration connects the cluster that a ClusterRegistration leads to as a
// member, and deregisters it in order: the controller cluster_registration.
//
// It reads the kubeconfig's Secret and configures the fleet; records the member's identity
// at the first connection, and rejects another one later; and reports the state, and what
// to do, in conditions. When the registration is deleted, it evicts the Pods there,
// withdraws or waits for the claims, and removes the virtual node, before it removes its
// finalizer.
package clusterregistration
