// Package copies reads live before a copy of a shared volume is deleted, or its record is removed.
// Its evidence covers the deletion of one claim or PV (Obsolete), or the removal of the record from
// one host PV (NoCopy):
//
//	ProveCopyClaimObsolete    the claim of a copy is not needed: reads the host PV, and the PV in the member
//	ProveCopyVolumeObsolete   no claim is bound to the PV of a copy: reads the claim in the member
//	Gone             the member has no copy: reads the copy's PV and claim
package copies
