// Package upgrade upgrades Kubernetes below Xylem: the host, and then one member after the other,
// while claims and their Pods are created and deleted all the time. In between, host and members
// have different versions. Nothing may be lost, and nothing may be left.
//
// It needs the programs of older versions (make kube-versions), so it runs only if
// XYLEM_UPGRADE_FROM names the version at which all clusters begin. `make test-versions` sets it.
package upgrade
