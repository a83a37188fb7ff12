// Package proof reads both clusters live before a write that destroys data, or that
// releases what protects it, and returns what the reads showed as evidence. Only this
// package creates evidence, with package snapshots below it, and package guarded deletes no leaf claim or leaf snapshot, and
// sets no leaf PV or leaf content to Delete, without it.
//
// A method of Prover returns true and a proof, or false. False usually means that a cache lags: the
// event of the newer object enqueues the request. An error proves nothing. The reconciler combines
// the proofs into an Evidence, in the order of their reads. Package guarded then checks that it
// covers the object: UIDs agree, the live state allows the write, and no proof was used before.
//
// Evidence expires. Each proof must follow the one before it, and the write the last one, within
// ten seconds; an older proof is invalid. The duration of a read does not count, because listing
// all volumes of a large host takes long.
//
// # Proofs
//
//	RootGone         the host has no claim of a UID: reads the claim's name
//	RootUnchanged    the root's placement is unchanged since it was observed: reads the claim
//	HostReleased     the host PV ended with its claim: reads the host PV
//	HostAssigned     the host PV is for the same claim: reads the host PV
//	HostUnchanged    nobody has written to the host PV: reads the host PV
//	LeafVolume       the leaf PV has the UID, policy and holder wanted, or is absent: reads it
//	NotMirrored      no host PV represents a leaf PV: reads both names of a mirror, and all
//	                 PVs of the host if data may be destroyed
//	NothingMade      an unbound leaf claim has no volume that the host represents: reads the
//	                 host PVs of its root and their leaf PVs, mirrors of what was provisioned,
//	                 and after a restore of the member all PVs of both
//	Unused           no Pod needs the disk of a claim here: reads the namespace's Pods, their nodes
//	MemberCurrent    the member was not restored under this process: reads the fence's Lease
//
// Some proofs are not part of an evidence: LeafGone (before a host PV is released: its leaves, the
// fence's Lease), PlacedHere, Promised and SourceHere (before a leaf claim is created), LeafClaimGone
// (before a placement is removed), Counterparts (before a claim is placed that a restored host may
// lack the placement of: reads the other members), Unprovisioned (before recovery reassigns a claim)
// and Unbound (before a Pod of a promise is failed). A test fails if a controller of volumes reads
// live without this package (internal/livereads_test.go lists the exceptions).
//
// # Evidence
//
// Each kind has its proofs in order, and the writes that it allows:
//
//	Destroying    HostReleased, RootGone, and RootGone of the root that the leaf PV is stamped
//	              for if it is another one: SetDelete of the leaf PV (root_pv)
//	Destroying    HostReleased, RootGone, LeafVolume: DeleteClaim (root_pv)
//	Keeping       HostAssigned, RootGone, LeafVolume: DeleteClaim of an earlier root (root_pv)
//	Keeping       RootGone, LeafVolume, NotMirrored, MemberCurrent: DeleteClaim of an orphan's
//	              claim (root_pvc)
//	Unmirrored    RootGone, LeafVolume, NotMirrored, MemberCurrent: DeleteClaim of a claim whose
//	              volume was never mirrored, or is lost (root_pvc)
//	Withdrawing   RootGone or RootUnchanged, NothingMade, MemberCurrent: DeleteClaim of an
//	              unbound claim (root_pvc)
//	Releasing     HostUnchanged, Unused: SetDelete of a promise's leaf PV (root_pv)
//	Releasing     HostUnchanged, LeafVolume: DeleteClaim of it (root_pv)
package proof
