// Package capacity reports to the host's scheduler which classes a member offers, and how
// much capacity it has: the controller capacity, for each Link, one request per host
// StorageClass. It keeps a CSIStorageCapacity for each class of Xylem's in mirror mode whose
// class the member has. As the CSIDriver csi.xylem.io asks for storage capacity, the
// scheduler gives a claim to no node without one: neither to a node of the host, nor to a
// member that lacks the class or the capacity. If a member was chosen anyway, since
// its class was deleted meanwhile, root_pvc removes the choice, with an event that lists
// the classes that exist.
//
// The capacity is the most that any one segment of the member's storage has, by the
// CSIStorageCapacities that its driver publishes there: a claim has to fit into one
// segment, and the member's scheduler chooses which. A class without such objects counts as
// unlimited, since many drivers publish none; CSIDriver objects of members are not read. A
// driver that is about to publish its first ones counts as one that does not.
//
// If the driver rejected a size for lack of space (exhausted.Sizes), capacity publishes
// less until that expires. Other figures are written when they change, at most every two
// seconds for each class and member (I7).
//
// The objects outlive the Link, since the Node is NotReady then anyway. They belong to the
// ClusterRegistration, and Kubernetes' garbage collector deletes them with it.
package capacity
