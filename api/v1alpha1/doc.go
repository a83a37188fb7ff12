// Package v1alpha1 is Xylem's API: the ClusterRegistration kind, the reasons of its conditions, and
// the keys that Xylem reads and writes on users' objects. Everything here is part of the API
// contract: external tools and tests rely on these names.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.xylem.io
package v1alpha1
