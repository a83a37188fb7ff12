// Package clusterregistration connects the cluster that a ClusterRegistration leads to as a
// member: the controller cluster_registration. It reads the kubeconfig's Secret and
// configures the fleet; records the member's identity at the first connection, and rejects
// another one later; and reports the state, and what to do, in conditions. When the
// registration is deleted, package deregistration removes the member.
package clusterregistration
