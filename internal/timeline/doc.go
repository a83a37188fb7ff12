// Package timeline orders what happened to one claim in both clusters, and how long each step
// took. It is pure: it reads the claim, its volume and its Pod in the host, and the leaf claim
// and leaf PV.
//
// The times come from the objects: creationTimestamp, the managedFields of the claim,
// lastPhaseTransitionTime of the host PV, and the Pod's conditions and container statuses. Their
// resolution is one second. Those of leaf objects are of the member's clock.
//
// A step is omitted unless both of its ends are known. A step that seems to end before it starts, or
// to start before the claim existed, is omitted too: either the clocks of both clusters differ, or
// the objects are older than the claim, as adopted volumes and promises can be.
package timeline
