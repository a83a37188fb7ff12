// Package capacity reports to the host's scheduler which classes a member offers and how much
// capacity they have. Its controller capacity runs for each Link and reconciles one host
// StorageClass for each request. It manages one CSIStorageCapacity for each Xylem class in mirror
// mode whose class exists in the member. The CSIDriver csi.xylem.io enables storage capacity
// tracking, so the scheduler does not assign a claim to a node without such an object: neither to a
// host node, nor to a member that lacks the class or the capacity. If the class is deleted after
// the scheduler chose the member, root_pvc removes the selected node and emits an event that lists
// the existing classes.
//
// The published capacity is the largest that any single segment of the member's storage has,
// according to the CSIStorageCapacities that the driver creates in the member. A claim must fit
// into one segment, which the member's scheduler chooses. A class without such objects counts as
// unlimited, because many drivers create none. The controller does not read the members' CSIDriver
// objects, so a driver that has not created its first object yet also counts as unlimited.
//
// From Kubernetes 1.37, the scheduler ranks members by free capacity: it prefers the member where
// the claim takes the smallest share. A class that counts as unlimited has no free capacity to
// compare. The controller therefore publishes an estimate in the field capacity, with the
// annotation xylem.io/capacity-estimated: the median of what the other members report for the
// class. The field maximumVolumeSize stays unlimited, so the scheduler excludes no member because
// of an estimate. If no member reports a capacity, all count as unlimited and rank equally. The
// controller checks the estimate every 30 s, and writes it again only if it is wrong by more than a
// quarter.
//
// If the driver rejected a size for lack of space (exhausted.RejectedSizes), the controller publishes less
// capacity until that record expires. It writes other changes no more than once every two seconds
// for each class and member (I7).
//
// The objects remain when the Link ends, because the Node is NotReady then anyway. The
// ClusterRegistration owns the objects, so Kubernetes' garbage collector deletes them when the
// ClusterRegistration is deleted.
package capacity
