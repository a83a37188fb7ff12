// Package kubebin builds and finds the programs that a loopback cluster is made
// of: etcd, the Kubernetes control plane, kubectl, the CSI sidecars and KWOK.
// All come out of the nested module test/kube, built by the Go toolchain and
// kept in the user's cache directory under a name that is a hash of everything
// the result depends on. Building and finding share this one implementation of
// that name.
package kubebin
