// Package manifests tests what config/ holds on a real control plane: that it
// applies, what the API server takes and refuses of a ClusterRegistration, and
// whom the admission policy keeps from writing Xylem's keys.
package manifests
