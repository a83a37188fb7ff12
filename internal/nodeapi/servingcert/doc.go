// Package servingcert provides the serving certificates: a self-signed one, kept in memory
// and rotated, or one requested from the signer kubernetes.io/kubelet-serving.
// (controller-runtime's certwatcher reads an admin's own certificate.)
package servingcert
