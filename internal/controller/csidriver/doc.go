// Package csidriver manages two CSIDrivers in the host: csi.xylem.io, the provisioner of Xylem's
// classes and the driver of volumes in members, and mock.csi.virtual-kubelet.io, the driver of
// promises. Its controller csi_driver runs on the leader. No driver runs under these names. The
// first one makes the scheduler require a CSIStorageCapacity (storageCapacity), so it never selects
// a host node for a claim of a Xylem class in mirror mode. Both declare that volumes need no
// attachment (attachRequired).
//
// The first one also contains the rules in spec.namespaces of all registrations (NamespaceRules), for the
// admission policies on bindings and new Pods. The host's API server evaluates a policy once for each of
// its parameters, even for Pods that have nothing to do with members. With the registrations as parameters, 200 of
// them delayed each new Pod by 0.3 s to 2 s.
//
// From Kubernetes 1.37, preventPodSchedulingIfMissing keeps Pods with volumes of a driver off nodes
// whose CSINode does not name it. csi_node creates the CSINodes of virtual nodes. Until all of them
// exist, the field would keep these Pods off members, so it is set last. Earlier hosts drop the
// field: it is missing from the objects that they return. csi_driver therefore does not set it in
// these hosts.
package csidriver
