// Package lifecycle is the life of a claim and its volume, as one table: Next maps an observation to
// the phase, the next step, the controller that takes it, the proofs that the step needs, and the
// message to the user. root_pvc, root_pv, leaf_pv, host_volume and promise share it. Each of them
// observes what its request is about, asks Next, and takes the step if it is the step's owner.
// They decide nothing else on claims and volumes.
//
// The table has three parts: claims of mirror mode without a volume (claims.go), promise mode
// until there is a disk (promises.go), and volumes in both modes (volumes.go). It is read from
// top to bottom, and the first row that matches holds. A row has an owner, so that two controllers
// never act on one volume at the same time, and one never waits for another that does not act.
// internal/VOLUMES.md shows the table, and is generated from it.
//
// Next is pure, and its observation comes from caches, which lag. The rows say when to begin a step;
// a step that destroys data then reads both clusters live, and writes only with the evidence that
// these reads are (package proof). test/model runs the controllers through every state of a claim.
//
// Two controllers that decide on claims have no rows. recovery reassigns all claims of a Pod, and
// of the Pods that share them, together: it compares members and Pods, of which an observation of one
// claim in one member knows nothing. host_claim reports on claims that no member has, and no
// member is observed for these. Neither meets the owner of a row: recovery writes only while
// root_pvc waits, on the claims that are selected for its member; host_claim takes off no
// selection of a connected member; and every write of where a claim is to go has its
// resourceVersion, so that one of two fails. A test in each of the two packages says the first
// two, and internal/claimwriters_test.go the third.
package lifecycle
