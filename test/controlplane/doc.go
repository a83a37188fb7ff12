// Package controlplane starts real Kubernetes clusters as processes on loopback:
// a host and any number of members, each with etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, with KWOK for its nodes, and in
// the members the real csi-provisioner and csi-resizer in front of a CSI driver
// that makes directories and keeps a ledger.
//
// Tests and the demo use it alike, so nothing here depends on a test framework:
// functions take contexts, return errors, and report progress through a callback.
//
// Each process can be stopped, killed, frozen, thawed and restarted at the same
// address; a cluster can be wiped, which leaves its address, certificates and
// disks and takes everything else; a proxy in front of each apiserver cuts a
// cluster off or swallows its traffic. Whatever happens to the program that
// called Start, no process outlives it (on Linux; elsewhere they are stopped on
// an orderly end only).
package controlplane
