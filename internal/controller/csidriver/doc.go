// Package csidriver keeps the CSIDriver object csi.xylem.io in the host: the
// controller csi_driver, on the leader. Nothing runs under that name. The object
// is there so that the scheduler insists on a CSIStorageCapacity (storageCapacity),
// by which plain nodes never win a claim of our classes, and so that nothing
// waits for a volume to be attached (attachRequired).
package csidriver
