// Package manifests tests config/ on a real control plane: that the manifests apply, which
// ClusterRegistrations the API server accepts and rejects, and which writes of whom the admission
// policies reject.
package manifests
