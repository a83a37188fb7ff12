// Package kubebin builds and finds the programs of a loopback cluster: etcd, the Kubernetes control
// plane, kubectl, the CSI sidecars and KWOK. The Go toolchain builds all of them from the nested
// module test/kube. They are in the user's cache directory, under a name that is a hash of all
// their dependencies. The code that builds them and the code that finds them share this
// computation.
package kubebin
