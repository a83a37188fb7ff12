// Package environment checks what Xylem needs from the host besides its own installation: settings of
// the control plane and of CSIDrivers, a path from the API server to the manager, DaemonSets that
// avoid virtual nodes, and a snapshot-controller. Like package judge, it is pure.
package environment
