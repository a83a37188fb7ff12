// Package csinode creates a CSINode for each virtual node, as a kubelet does for its own node. Its
// controller csi_node runs on the leader and reconciles one virtual node for each request.
//
// From Kubernetes 1.37, if a CSIDriver has preventPodSchedulingIfMissing, the scheduler places a
// Pod with a volume of that driver only on nodes whose CSINode names the driver. Only the CSINodes
// of virtual nodes name csi.xylem.io and mock.csi.virtual-kubelet.io. A Pod whose promise is not
// fulfilled yet, and whose volume therefore has no node affinity, then cannot be placed on a host
// node. csi_driver sets the field once the CSINodes of all virtual nodes exist.
//
// Xylem sets no allocatable.count in the CSINode, because it would limit the number of volumes.
// Xylem keeps a count that an admin sets, and the entries of other drivers. Kubernetes' garbage
// collector deletes the CSINode with its Node.
//
// If the CSINode cannot be written, or a foreign CSINode has its name, the Node's condition
// xylem.io/CSINode and an event report the problem, but only if the host's scheduler reads the
// field: Pods with volumes then cannot be placed on the node.
package csinode
