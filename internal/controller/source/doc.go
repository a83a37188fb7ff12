// Package source selects the member for claims with a data source: the controller source, on the
// leader, one request per claim.
//
// Only the member that has a volume or snapshot can create a copy of it, and the stock scheduler
// ignores data sources. But it respects the annotation selected-node: an unbound claim with that
// annotation fits only on that node. So source writes selected-node and steered-to with the virtual
// node of that member, and the record of the source (xylem.io/source), in one patch. It does so as
// soon as the source has a volume or the snapshot is ready. If the claim has no Pod yet, the
// scheduler nominates the first Pod on that node immediately. If the scheduler has already chosen
// another node, its PreBind fails, and it tries the selected node some seconds later. Each write has
// the claim's resourceVersion, so that it conflicts with a concurrent write of the scheduler.
//
// The claim of a promise gets only the record, because Xylem creates the promise with a node
// affinity for that member. A claim whose source only a populator knows may go to every member whose
// registration lists the kind. source moves it only if the scheduler chose another member.
//
// source reports nothing. host_claim reports, from the same placement.Source. source ignores claims
// that are placed in a member. root_pvc places a claim only where the record names, and recovery
// never moves it. The other claims of its Pod follow it.
package source
