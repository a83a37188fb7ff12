// Package servingcert has the certificates that the endpoint serves with: a self-signed one,
// kept in memory and rotated, or one that it requests of the signer
// kubernetes.io/kubelet-serving. (An admin's own certificate is read by controller-runtime's
// certwatcher.)
package servingcert
