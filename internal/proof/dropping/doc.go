// Package dropping creates the evidence with which Xylem deletes a host PV, or removes Xylem's
// finalizers or the record of a disk from it. The host PV is often the only object in the host that
// names a disk. Without this evidence, package guarded rejects these writes.
//
// Each function except ProveDiskKept returns evidence and true, or false:
//
//	ProveLeafGone       the member has no object left for a host PV that records a disk: reads the leaf
//	               PV, the leaf claim and the fence's Lease. It holds for the deletion of the host PV
//	               and, while the evidence lasts, for the removal of its finalizer (OnceDeleting)
//	ProvePromiseEnded   a promise without a disk has ended with its claim, and the member has no object
//	               left for it: reads the claim, the host PV, the leaf claim and the fence's Lease
//	ProveDiskKept       whether the member still has the disk; it also returns evidence if the disk is
//	               missing, which the caller may have to record first: reads the leaf PV and, if the
//	               disk is missing, the fence's Lease
//	Unneeded       no member has a promise, and no claim needs it: reads the claim and the host PV
//
// Four functions read nothing, because the host PV or the registration itself is the proof, and
// guarded writes only if the host PV is unchanged: DroppableIfNoDisk (a promise without a disk is free and being
// deleted), DroppableIfAbandoned (an admin set xylem.io/abandon), DroppableIfMemberLeaves (an admin deleted the
// member's registration), and CopyDroppableIfMemberLeaves (the same, for the record of a copy).
package dropping
