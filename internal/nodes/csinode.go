package nodes

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// DriverNames returns the names of the drivers in host PVs. A virtual node's CSINode lists them.
func DriverNames() []string { return []string{v1alpha1.ProvisionerName, v1alpha1.PromiseDriverName} }

// SchedulerReadsCSINodes reports whether the host's scheduler may check CSINodes. If so, the host's API
// server sets a default for the CSIDriver's preventPodSchedulingIfMissing, which older API servers
// drop. The CSIDriver may be nil.
func SchedulerReadsCSINodes(driver *storagev1.CSIDriver) bool {
	return driver != nil && driver.Spec.PreventPodSchedulingIfMissing != nil
}

// CSINodeNamesDriver reports whether a CSINode lists a driver.
func CSINodeNamesDriver(csiNode *storagev1.CSINode, driver string) bool {
	return slices.ContainsFunc(csiNode.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
}

// CSINodeNamesAllDrivers reports whether a CSINode lists all drivers of host PVs.
func CSINodeNamesAllDrivers(csiNode *storagev1.CSINode) bool {
	return !slices.ContainsFunc(DriverNames(), func(driver string) bool { return !CSINodeNamesDriver(csiNode, driver) })
}
