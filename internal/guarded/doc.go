// Package guarded is the only place that writes to a cluster on behalf of a member's controllers. A
// MemberWriter writes to a member, and a HostWriter to the host. Each write is checked first:
//
//   - Does this process hold the fence?
//   - Does the object belong to this host, by stamp or label, and UID (I4)?
//   - Is destruction in the member currently allowed (I2)?
//   - Does evidence from package proof cover the object? This applies to a write that destroys data,
//     deletes a claim, a copy or a namespace in the member, or releases a host PV or host content.
//
// A delete carries a UID precondition, and in the host also a resourceVersion; a patch carries
// both; a server-side apply carries a UID. Thus a write never changes a different object with the
// same name.
//
// Neither writer retries. A conflict means that the cache was behind (settling.go), and
// the watch event with the newer object enqueues the request. A write is not sent if its
// precondition cannot hold because the cache still shows a state that one of our own writes
// replaced (writes.go). Nor does a controller apply a status twice based on the same
// observed state.
//
// # Rate limits
//
// At most four of one member's writes to the host are in flight at a time, not
// counting writes that have taken longer than a second. The same limit applies to the writes of the
// promise controller, and to those of host_claim. The fence is checked when a write is admitted.
// Node Leases, Node statuses, and the leader's own Lease are not limited. Without the limit, if
// thousands of claims were created at once, a hundred of Xylem's requests would wait in the host's
// API server ahead of the leader's Lease, and ahead of the PV controller, which sends one request
// at a time.
//
// The amount of data that a member causes Xylem to write to the host is also limited: the status of
// a Pod or claim to 64 KiB, a virtual node to 64 resources, and status changes to an average of 512
// KiB a second, measured by the sizes of the objects.
//
// # Events
//
// client-go's recorder merges events that differ only in their note. Therefore, different reports
// on one object have different related objects or actions.
package guarded
