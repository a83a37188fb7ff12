// Package source selects the member for claims with a data source. Its controller, also named
// source, runs on the leader, with one request for each claim.
//
// Only the member that has a volume or snapshot can create a copy of it, but the stock scheduler
// ignores data sources. It does respect the annotation selected-node: an unbound claim with that
// annotation fits only on that node. source therefore writes selected-node and steered-to, with the
// member's virtual node, and the record of the data source (xylem.io/source), in one patch. It does
// so as soon as the source claim has a volume, or the snapshot is ready. If the claim has no Pod
// yet, the scheduler chooses that node for the first Pod immediately. If the scheduler has already
// chosen another node, its PreBind fails, and it tries the selected node some seconds later. Each
// write contains the claim's resourceVersion, so it conflicts with a concurrent write by the
// scheduler.
//
// If root_pod removed the selected node because the scheduler lost its nomination, source does not select it
// again before the scheduler has made another attempt, because the scheduler would not notice the removal. The
// next attempt writes a selected node, which enqueues the claim.
//
// The claim of a promise gets only the record, because Xylem creates the promise with a node
// affinity for that member. If only a populator can read the data source, the claim can go to any
// member whose registration lists the source's kind. source then selects another member only if the
// scheduler chose one whose registration does not.
//
// source reports nothing. host_claim reports on the claim, based on the same placement.CopySource.
// source ignores claims that are placed in a member. root_pvc places a claim only in the recorded
// member, and recovery never moves it. The other claims of its Pod follow it.
package source
