// Package recovery reassigns claims that a member cannot satisfy to another member. Its controller
// recovery runs in each Link, with one request per root claim. It writes the root's annotations
// steered-to, tried and selected-node.
//
// # Evidence
//
// root_pvc keeps the evidence in the claim's condition xylem.io/Placed, which is False and quotes
// the member's own message. The following counts as evidence: a rejection by the member's API
// server, a conflicting name or namespace, an Unschedulable leaf Pod, and a provisioner's
// ProvisioningFailed. A Pod that is unschedulable only because another of its claims is still being
// provisioned does not count. The condition's transition time is the timer, so a restart loses
// nothing. A member may send a new message each time. For each claim, the first few are written
// immediately, then one every ten seconds (rootpvc). A timeout of a slow driver
// (DeadlineExceeded, Canceled, Aborted) is not evidence, because the call may go on. Neither is a
// provisioner that reports nothing.
//
// # Reassigning
//
// When the evidence has lasted for the class's xylem.io/placement-timeout, the member's recovery
// takes all unbound claims of the Pod, and of the Pods that share them, and proves by live reads
// that the member has no volume for any of them. In one write per claim, with the claim's
// resourceVersion, it then sets selected-node to the node of the next member, and updates
// steered-to and tried. It reassigns no claim if one of them is bound, has a foreign class, or has
// an abandoned call that may still provision. The Placed condition reports the reason.
//
// This change makes the scheduler's PreBind fail, and the scheduler then tries only the new node.
// The next steps are the same as when the scheduler selects another node: the first member's
// root_pod and root_pvc withdraw the leaves, placed-in is removed when that member is proven empty
// (I3), and the second member's root_pvc waits until then. Since Xylem chose the member, not the
// scheduler, root_pvc also waits until a Pod is nominated there. A leaf that is bound in between
// takes precedence: placed-in still names its member, and the other claims of its Pod follow it. If
// the manager is killed between the writes for two claims of a Pod, the others follow the one that
// was reassigned last. If the scheduler does not follow within the timeout (at least 15 s, since
// the scheduler backs off for up to ten), recovery tries the next member.
//
// # A selection that its Pod cannot follow
//
// A claim can stay selected for a member in which its Pod cannot run: the Pod was replaced by one
// with other requirements, or the member was cordoned, tainted, or filled up. The leaf Pod is gone,
// and its evidence with it. The scheduler keeps to selected-node and never removes it. So recovery
// also counts the following as evidence: all of the group's Pods are Unschedulable, none is
// nominated here or pushed, and no provisioner may be creating one of the claims. A first call that
// has not failed yet counts as one that may (MayBeProvisioning). The timer is the latest transition
// of the Pods' condition PodScheduled, again with at least 15 s. The events of these Pods do not reach
// the Link, so recovery checks such claims once per timeout. Before the reassignment, live reads of
// the Pods confirm the evidence. If no member can place the Pod, one round of reassignments removes
// selected-node, and recovery makes no more writes until the scheduler selects a member.
//
// # The next member
//
// The next member must meet all of these conditions (placement.Verdict.Suitable):
//
//   - Its virtual node is Ready and not cordoned, and the Pod can run there (Member.MayRunPods).
//   - Its registration admits the namespace, and the class's topologies allow its node
//     (Member.AnswerRequest).
//   - It has a CSIStorageCapacity that fits each claim.
//   - It has not been tried in this round.
//
// With spec.nodes, each virtual node is a candidate. If the evidence may depend on the nodes of a group, the other groups of the
// same member come first, but at most three virtual nodes of a member are tried in a round, so that other members do not
// wait for each of hundreds. Claims whose data source is in the member can go to its other groups, too. The placement
// stays. The leaf claim is withdrawn and created again if the member's scheduler selected a node outside the new group for
// it. A leaf claim with a volume never moves.
//
// The member with the most capacity comes first. When all have been tried, recovery removes
// selected-node, so the scheduler can choose any member. The next round starts after a backoff that
// doubles from the timeout up to 30 minutes and is recorded in tried. If no other member qualifies,
// the claim keeps its member, and recovery records that once. The condition, tried, and events on
// the Pod and the claims quote each member's message. When the claim is bound, the annotations are
// removed.
//
// # Data sources
//
// A claim with a data source can be created in only one member, so recovery reassigns neither this
// claim nor the other claims of its Pod. There is one exception: if the scheduler chose this member
// for the other claims before the controller source selected the source's member, recovery
// reassigns them to that member.
//
// # Out of space
//
// Only the driver's own ResourceExhausted (reason OutOfSpace) reduces a class's capacity. It does
// so only for volumes of that size and larger, and only after it has lasted for the timeout,
// because the driver reports on one topology segment, and the member's scheduler may find another
// (I8). recovery records it in the Link's exhausted.RejectedSizes. capacity then publishes less for five
// minutes, or until the member publishes new figures, or until a claim of that size is satisfied
// there. OutOfRange does not count: drivers also return it for sizes that are too small, so a
// tenant's claim of one byte would make the class unavailable to all tenants. A Pod that cannot be
// scheduled does not count either (I8).
//
// The capacity stays if the claim's Pods may themselves exclude nodes (scheduling.RestrictsMemberNodes), or may
// have a volume that does: a shared one, or one of another class. The nodes that remain may be full
// while others are not, so a tenant could make the class look full for all tenants (I8). For the same
// reason, one of the Pods must have been pushed for the timeout: a Pod that has just replaced another
// proves nothing. Resource requests can also exclude nodes, but every Pod has them, so they do not
// count.
//
// If the capacity is reduced, recovery reassigns the claim only once that is published. But a lower
// capacity only spares other claims an attempt. The reassignment does not depend on it: the scheduler
// keeps to selected-node, and tried excludes the member for the rest of the round.
//
// # A lost member
//
// If placed-in does not name the member yet, nothing was written to the member. host_claim then
// removes the selection after the timeout, measured by the condition xylem.io/Placeable with reason
// MemberAway. If placed-in names the member, it may have a volume: the claim waits, and the
// condition lists what an admin can do.
//
// # Promises
//
// The Pod of a promise is bound before the disk exists, so the scheduler cannot move it: only
// another Pod can go elsewhere. root_pvc keeps the same evidence, and also counts a class that the
// member lacks. When the evidence has lasted for the timeout, and the Pod has existed for as long,
// leaf_pod fails the Pod (reason PlacementFailed) if a controller owns it, another member could run
// it with all of its claims, and a live read shows the leaf claim unbound. root_pod withdraws the
// leaf Pod, and root_pvc the leaf claim and the placement. Before leaf_pod fails the Pod, it
// records in the claim's annotation tried that this member failed.
//
// A round ends when the scheduler places the next Pod in a member that failed in this round, or
// when all other suitable members have failed. Later Pods are failed only after a backoff that
// doubles as above, so that an owner does not needlessly create Pods at a constant rate. The host
// does not know which members have the class. A Pod without an owner waits, and the claim reports
// why.
//
// This is tested by stories/recovery_test, by the tables of recovery, rootpvc, hostclaim and
// mirror, and by the fault scenarios recover and recover-together.
package recovery
