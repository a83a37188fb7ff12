// Package upgrade upgrades Kubernetes while Xylem runs: first the host, and then each member, while
// claims and their Pods are continuously created and deleted. Between the upgrades, the host and
// the members have different versions. Nothing must be lost or left behind.
//
// It needs the programs of older versions (make kube-versions), so it runs only if
// XYLEM_UPGRADE_FROM names the version that all clusters start with. `make test-versions` sets it.
package upgrade
