// Package manifests tests config/ on a real control plane: that the manifests can be applied, which
// ClusterRegistrations the API server accepts, and which users' writes the admission policies
// reject.
package manifests
