// Package source selects the member for claims with a data source: the controller source, on the
// leader, one request per claim. A copy of a volume, or of a snapshot, can only be created in the
// member that has it, and the stock scheduler never looks at data sources. It does go by the annotation
// selected-node: an unbound claim that has it fits on that node only, whoever wrote it.
//
// So source writes selected-node and steered-to, the virtual node of that member, and the record of
// what the source is (xylem.io/source), in one patch, as soon as the source has a volume, or the
// snapshot is ready. The claim may have no Pod yet: then the first one is nominated on that node at
// once. If the scheduler has already chosen another node, its PreBind fails, and it tries that one
// some seconds later. Each write has the claim's resourceVersion, so that it and the scheduler's
// write exclude each other.
//
// The claim of a promise gets the record alone: the promise is created with a node affinity for that
// member. A claim whose source only populators know may go to every member whose registration lists
// the kind. source moves it only if the scheduler chose another member.
//
// source reports nothing: host_claim does, from the same placement.Source. It leaves claims alone
// that are placed in a member, and those of other members. root_pvc places a claim only where the
// record says, and recovery never moves it; the other claims of its Pod follow it.
package source
