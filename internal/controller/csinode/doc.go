// Package csinode gives each virtual node a CSINode, as a kubelet gives its own node one. Its
// controller csi_node runs on the leader and reconciles one virtual node for each request.
//
// From Kubernetes 1.37, the scheduler places a Pod with a volume of a driver only on nodes whose
// CSINode names the driver, if the CSIDriver has preventPodSchedulingIfMissing. Only the CSINodes of
// virtual nodes name csi.xylem.io and mock.csi.virtual-kubelet.io. So a Pod of a promise that is
// not fulfilled yet, whose volume has no node affinity, cannot be placed on a node of the host.
// csi_driver sets the field once the CSINodes of all virtual nodes exist.
//
// The CSINode sets no allocatable.count, which would limit the number of volumes. Xylem keeps a
// count that an admin sets, and entries of other drivers. Kubernetes' garbage collector deletes the
// object with its Node.
//
// If the CSINode cannot be written, or another object has its name, the Node's condition
// xylem.io/CSINode and an event report it, but only in a host that reads the field. There,
// Pods with volumes cannot be placed on the node.
package csinode
