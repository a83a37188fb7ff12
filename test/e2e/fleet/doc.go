// Package fleet gives the end-to-end tests a host and its members: as clusters
// of kind, with real kubelets, where Xylem is installed by its charts as a user
// would; or as control planes on loopback (test/controlplane), where the same
// stories take seconds, and Pods run in name only.
package fleet
