// Package clusterregistration connects the cluster of a ClusterRegistration as a member. Its
// controller cluster_registration reads the Secret with the kubeconfig and configures the fleet. At
// the first connection, it records the member's identity; later, it rejects a different one. It
// reports the state, and what the admin must do, in conditions. When the registration is deleted,
// package deregistration removes the member.
//
// Its part conditions computes the conditions of a registration and the lists in its status. It does
// no I/O.
package clusterregistration
