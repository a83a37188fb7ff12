// Package placing reads both clusters live before a claim is placed in a member, or created there.
// Its proofs are not part of an Evidence, because nothing is destroyed after them:
//
//	FindCounterparts   which other members have, or may have, a leaf claim for a root: reads the
//	                 claim by name in each of them
//	ProvePlacedHere       a root is placed in this member: reads the claim
//	Promised         a promise is assigned to this member, or still has the same disk: reads the
//	                 host PV
//	ProveSourceHere       the data source of a root is the recorded one and in this member: reads the
//	                 source in the host, and the object with its name in the member
package placing
