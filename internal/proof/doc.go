// Package proof reads both clusters live before a write that destroys data, or that releases what
// protects it, and returns what the reads showed as evidence. Only this package and its subpackages
// copies, dropping, namespaces and snapshots create evidence. Without evidence, package guarded does
// not delete a leaf claim, leaf snapshot, copy or member's namespace, does not set a leaf PV or leaf
// content to Delete, and does not release a host PV or host content.
//
// A method of Prover returns true and a proof, or false. False usually means that a cache lags, and
// that the newer object's event will enqueue the request. An error proves nothing. The reconciler
// combines the proofs into an Evidence, in the order of their reads. Package guarded then checks
// that the Evidence covers the object: the UIDs agree, the live state allows the write, and no
// proof has been used before.
//
// Concurrent proofs share the reads that prove the state of a whole cluster or namespace (package batch):
// that of the fence, and the lists of Unneeded. A proof never shares a read that was sent before it began.
//
// Evidence expires. Each proof must follow the previous one within ten seconds, and the write must
// follow the last proof within ten seconds; an older proof is invalid. The duration of a read does
// not count, because it can take a long time to list all volumes in a large host.
//
// # Proofs
//
//	ProveRootGone         the host has no claim with the given UID: reads the claim by name
//	ProveRootUnchanged    the root's placement has not changed since it was observed: reads the claim
//	ProveHostReleased     the host PV has ended with its claim: reads the host PV
//	ProveHostAssigned     the host PV still names the same claim: reads the host PV
//	ProveHostUnchanged    the host PV has not changed since it was observed: reads the host PV
//	ProveLeafVolume       the leaf PV has the expected UID, policy and holder, or is missing: reads the
//	                 leaf PV
//	ProveNotMirrored      no host PV represents a leaf PV: reads the PVs with the two names that a
//	                 mirror can have; if data may be destroyed, also all PVs in the host, of which none
//	                 may belong to the same claim
//	NothingMade      the host represents no volume of an unbound leaf claim: reads the host PVs of
//	                 the claim's root, the leaf PVs that they record, and the host PVs of any
//	                 volume that was provisioned for the claim; after a restore of the member, also all
//	                 PVs in both clusters
//	Unneeded         no other object in the host needs the data that a write destroys (Needs): lists
//	                 the namespace's claims and, while the claim exists, its VolumeSnapshots
//	Unused           no Pod needs a claim's disk in this member: reads the namespace's Pods and
//	                 their nodes
//	ProveMemberCurrent    the member was not restored while this process ran: reads the fence's Lease
//
// Some proofs are not part of an Evidence: ProveLeafClaimGone (before a placement is removed),
// Unprovisioned (before recovery reassigns a claim), ProveLeafPodGone and Unbound (before a Pod is set to
// Failed, or its leaf is marked as withdrawn), Unmarked (before a leaf Pod that uses a promise is
// created), and those of packages placing and adoption. A test fails if a volume controller reads live
// without these packages (test/source/live_reads_test.go lists the exceptions).
//
// # Evidence
//
// Each kind of Evidence, with its proofs in order, and the writes that it allows. Those that destroy data
// (Destroys) require Unneeded, too, which ProveVolumeUnneeded and ProveSnapshotUnneeded prove (Destruction):
//
//	Destroying    ProveRootGone, ProveRootGone of the root for which the leaf PV is stamped, if it is a
//	              different one, and ProveHostReleased: SetDelete of the leaf PV (root_pv)
//	Destroying    ProveRootGone, ProveLeafVolume, ProveHostReleased: DeleteClaim (root_pv). If it follows SetDelete
//	              immediately, ProveRootGone is the same (Next)
//	Keeping       ProveHostAssigned, ProveRootGone, ProveLeafVolume: DeleteClaim of an earlier root (root_pv)
//	Keeping       ProveRootGone, ProveLeafVolume, ProveNotMirrored, ProveMemberCurrent: DeleteClaim of an orphan's
//	              claim (root_pvc)
//	Unmirrored    ProveRootGone, ProveLeafVolume, ProveNotMirrored, ProveMemberCurrent: DeleteClaim of a claim whose
//	              volume was never mirrored or is lost (root_pvc)
//	Withdrawing   ProveRootGone or ProveRootUnchanged, NothingMade, ProveMemberCurrent: DeleteClaim of an
//	              unbound claim (root_pvc)
//	Releasing     ProveHostUnchanged, Unused: SetDelete of a promise's leaf PV (root_pv)
//	Releasing     ProveHostUnchanged, ProveLeafVolume: DeleteClaim of a promise's leaf claim (root_pv)
package proof
