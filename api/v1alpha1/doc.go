// Package v1alpha1 is Xylem's API: the ClusterRegistration kind, the reasons
// of its conditions, and the keys that Xylem reads and writes on other
// people's objects. Everything here is contract: outside tools and tests rely
// on these names.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.xylem.io
package v1alpha1
