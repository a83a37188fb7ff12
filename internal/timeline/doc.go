// Package timeline lists the steps of one claim in both clusters, in order, and how long each step
// took. It is pure: it evaluates the claim, its volume and its Pod in the host, and the leaf claim
// and leaf PV.
//
// The times come from the objects: creationTimestamp, the managedFields of the claim,
// lastPhaseTransitionTime of the host PV, and the Pod's conditions and container statuses. Their
// resolution is one second. The times in leaf objects come from the member's clock.
//
// A step is omitted unless its start and end are known. A step that seems to end before it starts,
// or to start before the claim existed, is also omitted: either the clusters' clocks differ, or the
// objects are older than the claim, as adopted volumes and promises can be.
package timeline
