// Package capacity tells the host's scheduler which classes a member offers, and
// how much room it has: the controller capacity, for each Link, one request per
// host StorageClass. It keeps a CSIStorageCapacity for each class of ours in mirror
// mode whose class in the member is there. As the CSIDriver object of csi.xylem.io
// asks for storage capacity, the scheduler gives a claim to no node without one:
// neither to a plain node nor to a member that lacks the class, or the room.
//
// The room is the most that any one segment of the member's storage has, by the
// CSIStorageCapacities that its driver publishes there: a claim has to fit into
// one, and to which one it goes is the member's scheduler's part. A class for which
// there is none has room for anything: many drivers publish none. That goes by the
// objects alone; a driver that is about to publish its first ones counts as one that
// does not. What the driver itself had no room for (account.Exhausted) lowers the
// room until then. Figures are written when they change, and not more often than
// every two seconds for a class.
//
// They outlive the Link, since the Node is NotReady then anyway, and belong to
// the ClusterRegistration, with which Kubernetes' garbage collector removes them.
package capacity
