// Package manifests tests config/ on a real control plane: that it applies, which ClusterRegistrations
// the API server accepts and rejects, and whom the admission policies prevent from writing what.
package manifests
