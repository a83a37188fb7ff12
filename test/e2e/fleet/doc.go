// Package fleet provides the end-to-end tests with a host and its members. These are kind
// clusters with real kubelets, where the tests install Xylem with its charts as a user does, or
// control planes on loopback (test/controlplane), where the same stories take seconds and Pods
// do not really run.
package fleet
