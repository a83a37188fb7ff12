// Package dropping examines a host PV before Xylem gives up what it holds in the host: before the
// PV is deleted, before Xylem's finalizer is removed, or before the record of its disk is removed.
// The host PV is often the only object in the host that names a disk. Without evidence, package
// guarded does none of this.
//
// Each function returns true and evidence, or false:
//
//	LeafGone       the member has no object left for a host PV that records a disk: reads the leaf
//	               PV, the leaf claim and the fence's Lease
//	PromiseEnded   a promise without a disk has ended with its claim, and the member has no object
//	               left for it: reads the claim, the host PV, the leaf claim and the fence's Lease
//	DiskKept       the member still has the disk, or it is missing, and the caller must record this
//	               first: reads the leaf PV, and the fence's Lease if it is missing
//	Unneeded       no member has a promise, and no claim needs it: reads the claim and the host PV
//
// Three functions read nothing, because the host PV or the registration itself is the proof, and
// guarded writes only if the host PV is unchanged: Unclaimed (it never had a claim or a disk, and is
// being deleted), Abandoned (an admin set xylem.io/abandon), and Deregistering (the admin deleted the
// member's registration).
package dropping
