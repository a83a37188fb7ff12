// Package clusterregistration connects the cluster of a ClusterRegistration as a member. Its
// controller cluster_registration reads the Secret with the kubeconfig and configures the
// fleet. It records the member's identity at the first connection and rejects a different one
// later. It reports the state, and what to do, in conditions. When the registration is
// deleted, package deregistration removes the member.
package clusterregistration
