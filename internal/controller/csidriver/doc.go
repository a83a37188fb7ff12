// Package csidriver keeps the CSIDriver csi.xylem.io in the host: the controller
// csi_driver, on the leader. No driver runs under that name. The object makes the scheduler
// require a CSIStorageCapacity (storageCapacity), so that nodes of the host never get a
// claim of our classes, and makes nothing wait for an attachment (attachRequired).
package csidriver
