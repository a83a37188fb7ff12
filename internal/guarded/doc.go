// Package guarded is the only place that writes to a cluster on behalf of a member's
// controllers. A Leaf writes to a member, a Root to the host. Each write is checked first:
//
//   - Does this process hold the fence?
//   - Does the object belong to this host, by stamp or label, and UID (I4)?
//   - Is destruction allowed at present (I2)? A write that ends a leaf claim, or sets a leaf PV to
//     Delete, needs evidence of package proof that covers the object.
//
// A delete carries a UID precondition, in the host also a resourceVersion; a patch carries
// both; a server-side apply carries a UID. So a write meant for one object never meets
// another of the same name.
//
// Neither retries. A conflict is an error (Settling: the cache was behind), and the watch
// that brings the newer object enqueues the request. A write that must miss its
// precondition, since the cache still shows a state that one of our own writes replaced, is
// not sent (package overwritten). A status is not applied to the state that the same
// controller's last apply was decided on.
//
// # Rate limits
//
// Of one member's writes to the host, four are in flight at a time (package pacing), not counting those
// that have taken longer than a second, which no other write waits for. The same limit applies to
// the writes of promise, and to those of host_claim. The fence is checked when a write is admitted.
// Leases and statuses of Nodes, and the leader's own Lease, are not limited. Otherwise, if
// thousands of claims are created at once, a hundred requests of Xylem would wait in the host's API
// server ahead of that Lease, and ahead of the PV controller, which sends one request after the
// other.
//
// What a member makes Xylem write to the host is limited too: the status of a Pod or claim
// has 64 KiB at most, a virtual node 64 resources, and changing statuses write 512 KiB a
// second in the long run, by the sizes of the objects.
//
// # Events
//
// Two events that differ only in their note are one event to client-go's recorder. So different
// reports on one object have different related objects or actions.
package guarded
