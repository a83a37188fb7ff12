// Package lifecycletest contains fixtures for the tests of packages rootpod and lifecycle:
// Pods with their claims.
package lifecycletest
