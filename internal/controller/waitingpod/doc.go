// Package waitingpod reports on a Pod why it has no node, or that its node belongs to the
// host and cannot mount a member's volume. Its controller waiting_pod runs on the leader and
// reconciles one Pod for each request.
//
// The scheduler reports "did not have enough free storage" for an unknown class parameter, a
// class that no member offers, and a member without capacity. Xylem can tell these causes apart:
// either host_claim or root_pvc has reported the cause on a claim of the Pod, or it follows from
// the Pod, the virtual nodes and the members' capacities. The controller reports the cause in the
// Pod's condition xylem.io/Placeable and in an event.
//
// A claim may also be selected for a member that cannot run the Pod, for example because the Pod was
// replaced. The scheduler then reports that the nodes of all other members lack volumes. The
// controller reports the selection (NotScheduledThere) until recovery changes it.
//
// The scheduler may also exclude virtual nodes because of a rule, such as anti-affinity by host name. Its
// message does not show that each virtual node represents a member, so the controller reports what the rule
// means for members (NoMemberFits). This is the only report on Pods without a claim of a Xylem class, and
// only if they could otherwise run on a virtual node. Kubernetes' message suffices for other Pods, and for
// insufficient CPU or memory.
//
// It copies a problem from a claim
// immediately, unless Pods can use the claim despite the problem. It reports other causes only after
// the Pod has been unschedulable for five seconds (patience), to avoid writes to a Pod that is about
// to be scheduled. If only values in the message change, it updates the message at most once a minute
// (refresh, I5).
package waitingpod
