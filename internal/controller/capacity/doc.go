// Package capacity tells the host's scheduler which classes a member offers:
// the controller capacity, for each Link, one request per host StorageClass. It
// keeps a CSIStorageCapacity for each class of ours in mirror mode whose class
// in the member is there, with room for anything, since members do not say how
// much they have. As the CSIDriver object of csi.xylem.io asks for storage
// capacity, the scheduler gives a claim to no node without one: neither to a
// plain node nor to a member that lacks the class.
//
// They outlive the Link, since the Node is NotReady then anyway, and belong to
// the ClusterRegistration, with which Kubernetes' garbage collector removes them.
package capacity
