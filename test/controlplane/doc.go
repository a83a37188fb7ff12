// Package controlplane starts real Kubernetes clusters as processes on loopback: a host and any
// number of members. Each has etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and
// KWOK for its nodes. Members also have the real csi-provisioner and csi-resizer, and a CSI driver
// that creates directories and keeps a ledger.
//
// Tests and the demo use it, so the package does not depend on a test framework: functions take
// contexts, return errors, and report progress through a callback.
//
// Each process can be stopped, killed, frozen, thawed and restarted at the same address. A cluster
// can be wiped, which keeps only its address, certificates and disks. A proxy in front of each
// apiserver disconnects a cluster or drops its traffic. On Linux, no process outlives the program
// that called Start, even if it crashes. Elsewhere, the processes stop only if the program ends
// normally.
package controlplane
