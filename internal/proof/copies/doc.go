// Package copies reads live before a copy of a shared volume is deleted, or its record is removed.
// Its Evidence covers the deletion of one claim or PV:
//
//	ClaimObsolete    the claim of a copy is not needed: reads the host PV, and the PV in the member
//	VolumeObsolete   no claim is bound to the PV of a copy: reads the claim in the member
//
// Gone (before the record of a copy is removed: the copy's PV and claim) is not part of an Evidence.
package copies
