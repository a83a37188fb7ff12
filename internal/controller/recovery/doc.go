// Package recovery reassigns claims that a member cannot satisfy to another one: the
// controller recovery, for each Link, one request per root claim. It writes the root's
// steered-to and tried annotations, and selected-node.
//
// # Evidence
//
// root_pvc keeps the evidence: the claim's xylem.io/Placed condition, False, with the
// member's own words. What counts: rejections by the member's API server, a name or
// namespace that is taken, a leaf Pod that is Unschedulable, a provisioner's
// ProvisioningFailed. A Pod that is unschedulable only because its other claim is still
// being provisioned counts against none. The condition's transition time is the timer, so
// that a restart loses nothing. Of changing messages, a few are written immediately, then one
// every ten seconds for each claim (rootpvc/reporting), since a member may send a new one
// each time. A slow driver's answer (DeadlineExceeded, Canceled, Aborted: the call may go
// on) is not evidence, nor is a provisioner that reports nothing.
//
// # Reassigning
//
// When the evidence has lasted for the class's xylem.io/placement-timeout, recovery of that member
// takes all unbound claims of the Pod, and of the Pods that share them, and proves by live reads
// that the member has no volume for any of them. Then it rewrites selected-node of each to the node
// of the next member, together with steered-to and tried, with the claim's resourceVersion. No
// claim is reassigned if one of them is bound, has a foreign class, or has an abandoned call that
// may still provision. The condition reports that.
//
// The scheduler's PreBind fails on the rewrite, and it then tries that node only. The next steps
// are the same as when the scheduler selects another node: root_pod and root_pvc of the first
// member withdraw, placed-in is removed when that member is proven empty (I3), and root_pvc of the
// second waits for that. Since Xylem chose the member, not the scheduler, it also waits until a Pod
// is nominated there. A leaf that is bound in between takes precedence: placed-in still names its
// member, and the other claims of its Pod follow it. If the manager ends between the writes for two
// claims of a Pod, the others follow the one that was reassigned last. If the scheduler does not
// follow within the timeout (at least 15 s, since it backs off for ten), the next member is tried.
//
// # The next member
//
// The next member is one whose virtual node is Ready, not cordoned, and suits the Pod
// (Member.MayRun); whose registration admits the namespace, and whose node the class's topologies
// allow (Member.Answer); which has a CSIStorageCapacity that fits each claim; and which was not
// tried in this round. The one with the most capacity comes first. When all were tried,
// selected-node is removed, so the scheduler is free, and the next round starts after a pause that
// doubles from the timeout up to 30 minutes; the annotation tried remembers it. Without another
// member, the claim keeps its member, and recovery records that once. The condition, tried, and
// events on the Pod and the claims quote each member. The binding ends it, and the annotations are
// removed.
//
// # Data sources
//
// A claim with a data source can be created in only one member: recovery reassigns neither this
// claim nor the other claims of its Pod. But it reassigns the others to that member, if the
// scheduler chose this member for them before the controller source selected that one.
//
// # Out of space
//
// Only the driver's own ResourceExhausted (reason OutOfSpace) reduces a class's capacity, only for
// volumes of that size and larger, and only after it has lasted for the timeout: the driver means
// one place, and the member's scheduler may find another (I8). recovery notes it in the Link's
// exhausted.Sizes, and capacity publishes less for five minutes, or until the member publishes new
// figures, or a claim of that size is satisfied there. No claim is moved before that is published.
// OutOfRange does not count: drivers also return it for sizes that are too small, and a tenant's
// claim of one byte would make the class unavailable to all tenants. A Pod that cannot be scheduled
// does not count either (I8).
//
// # A member that is lost
//
// If placed-in does not name the member yet, nothing was written to it: host_claim removes
// the selection after the timeout (condition xylem.io/Placeable, reason MemberAway, is the
// timer). If placed-in names it, it may have a volume: the claim waits, and the condition
// lists the ways out.
//
// # Promises
//
// A Pod of a promise is bound before the disk exists, and no scheduler is asked again: only another
// Pod can go elsewhere. root_pvc keeps the same evidence, which includes a class that the member
// lacks. When it has lasted for the timeout, and the Pod has existed for as long, leaf_pod fails
// the Pod (reason PlacementFailed) if a controller owns it, another member could take it with all
// of its claims, and a live read shows the leaf claim unbound. root_pod withdraws the leaf Pod,
// root_pvc the leaf claim and the placement. First, leaf_pod records in the claim's tried that this
// member failed. When the scheduler places the next Pod in a member that failed in this round, or
// all others that suit have, the round ends with that Pod. Later Pods are failed only after a pause
// that doubles as above, so that no owner needlessly creates Pods at a constant rate. The host does
// not know which members have the class. A Pod without an owner waits; the claim reports why.
//
// Shown by stories/recovery_test; the tables of recovery, rootpvc, hostclaim and mirror;
// the fault scenarios recover and recover-together.
package recovery
