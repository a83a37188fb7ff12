// Package lifecycle describes the lifecycle of a claim and its volume in one table. Next maps an
// observation to the phase, the next step, the controller that takes it, the proofs that the step
// needs, and the message to the user. root_pvc, root_pv, leaf_pv, host_volume and promise share the
// table. Each of them observes the object of its request, calls NextPlan, and takes the step if
// the plan names that controller. They make no other decisions about claims and volumes.
//
// The table has three parts: mirror mode for claims without a volume (claims.go), promise mode
// until a disk exists (promises.go), and volumes in both modes (volumes.go). The first row that
// matches applies. Each row has one owner, so two controllers never act on one volume at the same
// time, and a controller never waits for another one that does not act. internal/VOLUMES.md is
// generated from the table.
//
// Next is pure. Its observations come from caches, which may be stale. The rows determine when a
// step begins. A step that destroys data then reads both clusters live (package proof). test/model
// runs the controllers through every state of a claim.
//
// Some decisions on claims and volumes have no rows:
//   - recovery reassigns all claims of a Pod, and of the Pods that share them, together. It compares
//     members and Pods, which an observation of one claim in one member lacks.
//   - host_claim reports on claims that are not placed yet, so there is no member to observe.
//   - source selects the member that has a claim's data source, while root_pvc waits for that.
//   - leaf_pod ends the attempt of a promise in a member that does not start the Pod.
//   - Package deregistration releases the claims and volumes of a member that an admin removes, and
//     package sharing creates and removes copies of shared volumes.
//   - orphan only classifies and reports volumes that nothing in the host represents.
//
// recovery and host_claim do not conflict with the owner of a row. recovery writes only while root_pvc
// waits, to claims that are selected for its member. host_claim never removes the selection of a
// connected member. Every write of a claim's destination includes the claim's resourceVersion, so that
// one of two concurrent writes fails. A test in each of the two packages checks the statements about
// recovery and host_claim. test/source/placement_writes_test.go checks the one about writes.
package lifecycle
