// Package csidriver manages the CSIDriver csi.xylem.io in the host. Its controller csi_driver
// runs on the leader. No driver runs under that name. The object makes the scheduler require
// a CSIStorageCapacity (storageCapacity), so that nodes of the host never get a claim of
// Xylem's classes. It also tells Kubernetes that volumes need no attachment (attachRequired).
package csidriver
