// Package proof reads both clusters live before a write that destroys data, or that releases what
// protects it, and returns what the reads showed as evidence. Only this package creates evidence.
// Without evidence, package guarded does not delete a leaf claim, leaf snapshot, copy or member's
// namespace, does not set a leaf PV or leaf content to Delete, and does not release a host PV or host
// content.
//
// A method of Prover returns true and a proof, or false. False usually means that a cache lags, and
// that the newer object's event will enqueue the request. An error proves nothing. The reconciler
// combines the proofs into an Evidence, in the order of their reads. Package guarded then checks
// that the Evidence covers the object: the UIDs agree, the live state allows the write, and no
// proof has been used before.
//
// Concurrent proofs share the reads that prove the state of a whole cluster or namespace (SharedReads):
// that of the fence, and the lists of ProveVolumeUnneeded. A proof never shares a read that was sent before it began.
//
// Evidence expires. Each proof must follow the previous one within ten seconds, and the write must
// follow the last proof within ten seconds; an older proof is invalid. The duration of a read does
// not count, because it can take a long time to list all volumes in a large host.
//
// # Proofs
//
//	ProveRootGone            the host has no claim with the given UID: reads the claim by name
//	ProveRootUnchanged       the root's placement has not changed since it was observed: reads the claim
//	ProveHostReleased        the host PV has ended with its claim: reads the host PV
//	ProveHostAssigned        the host PV still names the same claim: reads the host PV
//	ProveHostUnchanged       the host PV has not changed since it was observed: reads the host PV
//	ProveLeafVolume          the leaf PV has the expected UID, policy and holder, or is missing: reads the
//	                         leaf PV
//	ProveNotMirrored         no host PV represents a leaf PV: reads the PVs with the two names that a
//	                         mirror can have; if data may be destroyed, also all PVs in the host, of which none
//	                         may belong to the same claim
//	ProveNothingProvisioned  the host represents no volume of an unbound leaf claim: reads the host PVs of
//	                         the claim's root, the leaf PVs that they record, and the host PVs of any
//	                         volume that was provisioned for the claim; after a restore of the member, also all
//	                         PVs in both clusters
//	ProveVolumeUnneeded      no other object in the host needs the data that a write destroys (Needs): lists
//	                         the namespace's claims and, while the claim exists, its VolumeSnapshots
//	ProveClaimUnused         no Pod needs a claim's disk in this member: reads the namespace's Pods and
//	                         their nodes
//	ProveMemberCurrent       the member was not restored while this process ran: reads the fence's Lease
//
// Some proofs are not part of an Evidence: ProveLeafClaimGone (before a placement is removed),
// ProveUnprovisioned (before recovery reassigns a claim), ProveLeafPodGone and ProveLeafUnbound (before a Pod is set to
// Failed, or its leaf is marked as withdrawn), ProvePromiseUnmarked (before a leaf Pod that uses a promise is
// created), and those before a placement or an adoption. A test fails if a volume controller reads live
// without this package (test/source/live_reads_test.go lists the exceptions).
//
// # Evidence
//
// Each kind of Evidence, with its proofs in order, and the writes that it allows. Those that destroy data
// (DataDestroyingEvidence) require DataUnneeded, too, which ProveVolumeUnneeded and
// ProveSnapshotUnneeded prove (DestructionEvidence):
//
//	DestroyingVolume  ProveRootGone, ProveRootGone of the root for which the leaf PV is stamped, if it is a
//	                  different one, and ProveHostReleased: SetVolumePolicyDelete of the leaf PV (root_pv)
//	DestroyingVolume  ProveRootGone, ProveLeafVolume, ProveHostReleased: DeleteClaim (root_pv). If it follows SetVolumePolicyDelete
//	                  immediately, ProveRootGone is the same (EvidenceForClaim)
//	KeepingVolume     ProveHostAssigned, ProveRootGone, ProveLeafVolume: DeleteClaim of an earlier root (root_pv)
//	KeepingVolume     ProveRootGone, ProveLeafVolume, ProveNotMirrored, ProveMemberCurrent: DeleteClaim of an orphan's
//	                  claim (root_pvc)
//	UnmirroredVolume  ProveRootGone, ProveLeafVolume, ProveNotMirrored, ProveMemberCurrent: DeleteClaim of a claim whose
//	                  volume was never mirrored or is lost (root_pvc)
//	WithdrawingClaim  ProveRootGone or ProveRootUnchanged, ProveNothingProvisioned, ProveMemberCurrent: DeleteClaim of an
//	                  unbound claim (root_pvc)
//	ReleasingPromise  ProveHostUnchanged, ProveClaimUnused: SetVolumePolicyDelete of a promise's leaf PV (root_pv)
//	ReleasingPromise  ProveHostUnchanged, ProveLeafVolume: DeleteClaim of a promise's leaf claim (root_pv)
//
// Its part adoption reads both clusters live before a volume gets a new owner: before an admin's host PV
// is recorded as the representation of an existing volume in a member, or a claim gets the volume that
// it requests. Its proofs are not part of an Evidence, because nothing is destroyed after them.
//
// Its part batch lets concurrent callers share live reads, as a group commit does with writes: while one
// read is in flight, all later callers wait for the next one. A caller never gets the result of a read
// that was sent before it asked, so a shared read proves as much as one of its own.
//
// Its part copies reads live before a copy of a shared volume is deleted, or its record is removed.
// Its evidence covers the deletion of one claim or PV (CopyObsolete), or the removal of the record from
// one host PV (NoCopy):
//
//	ProveCopyClaimObsolete   the claim of a copy is not needed: reads the host PV, and the PV in the member
//	ProveCopyVolumeObsolete  no claim is bound to the PV of a copy: reads the claim in the member
//	ProveCopyGone            the member has no copy: reads the copy's PV and claim
//
// Its part dropping creates the evidence with which Xylem deletes a host PV, or removes Xylem's
// finalizers or the record of a disk from it. The host PV is often the only object in the host that
// names a disk. Without this evidence, package guarded rejects these writes.
//
// Each function except ProveDiskKept returns evidence and true, or false:
//
//	ProveLeafGone         the member has no object left for a host PV that records a disk: reads the leaf
//	                      PV, the leaf claim and the fence's Lease. It holds for the deletion of the host PV
//	                      and, while the evidence lasts, for the removal of its finalizer (OnceDeleting)
//	ProvePromiseEnded     a promise without a disk has ended with its claim, and the member has no object
//	                      left for it: reads the claim, the host PV, the leaf claim and the fence's Lease
//	ProveDiskKept         whether the member still has the disk; it also returns evidence if the disk is
//	                      missing, which the caller may have to record first: reads the leaf PV and, if the
//	                      disk is missing, the fence's Lease
//	ProvePromiseUnneeded  no member has a promise, and no claim needs it: reads the claim and the host PV
//
// Four functions read nothing, because the host PV or the registration itself is the proof, and
// guarded writes only if the host PV is unchanged: DroppableIfNoDisk (a promise without a disk is free and being
// deleted), DroppableIfAbandoned (an admin set xylem.io/abandon), DroppableIfMemberLeaves (an admin deleted the
// member's registration), and CopyDroppableIfMemberLeaves (the same, for the record of a copy).
//
// Its part namespaces proves that a namespace in a member is empty, before Xylem deletes it. A
// namespace is deleted with everything in it, including claims.
//
// Its part placing reads both clusters live before a claim is placed in a member, or created there.
// Its proofs are not part of an Evidence, because nothing is destroyed after them:
//
//	FindCounterparts   which other members have, or may have, a leaf claim for a root: reads the
//	                   claim by name in each of them
//	ProvePlacedHere    a root is placed in this member: reads the claim
//	ProvePromisedHere  a promise is assigned to this member, or still has the same disk: reads the
//	                   host PV
//	ProveSourceHere    the data source of a root is the recorded one and in this member: reads the
//	                   source in the host, and the object with its name in the member
//
// Its part snapshots reads both clusters live before a write to a leaf snapshot or the
// release of a host content, as package proof
// does for volumes. Its Evidence covers the deletion of leaf VolumeSnapshots and their contents, and
// the release of host contents.
//
// # Proofs
//
//	ProveSnapshotEnded     the host's VolumeSnapshot is gone, or being deleted: lists it by name
//	ProveContentEnded      the host content is not abandoned, has policy Delete, and is being deleted,
//	                       and the deletion of its VolumeSnapshot was announced: lists the content by
//	                       name
//	ProveContentUnchanged  the host content has not changed since it was observed: lists it by name
//	ProveNotRepresented    the host has no content for a VolumeSnapshot: lists contents by name
//	ProveLeafContent       a leaf VolumeSnapshot's content is as expected, or missing: lists it by name
//	ProveLeafSnapshotGone  the VolumeSnapshot of a leaf content is gone: lists it by name
//
// ProveSnapshotPlacedHere (before a leaf VolumeSnapshot is created) is not part of an Evidence.
//
// # Evidence
//
// Each kind of Evidence, with its proofs in order, and the writes of root_snapshot that it allows. A
// DestroyingSnapshot also requires ProveSnapshotUnneeded:
//
//	DestroyingSnapshot  ProveContentEnded, ProveSnapshotEnded: SetContentPolicyDelete
//	DestroyingSnapshot  ProveContentEnded, ProveSnapshotEnded, ProveLeafContent: DeleteSnapshot
//	DestroyingSnapshot  ProveContentEnded, ProveSnapshotEnded, ProveLeafSnapshotGone: DestroyLeafContent
//	KeepingSnapshot     ProveContentUnchanged, ProveSnapshotEnded, ProveLeafContent: DeleteSnapshot
//	KeepingSnapshot     ProveSnapshotEnded, ProveLeafContent, ProveNotRepresented, ProveMemberCurrent: DeleteSnapshot
//
// ProveLeafSnapshotDataKept collects the proofs of a KeepingSnapshot.
//
// DroppableContent allows root_snapshot and host_snapshot to remove the finalizer from a host content.
// It results from one of:
//
//	ProveSnapshotLeafGone  no leaf exists: lists the leaves by name, reads the fence's Lease
//	ProveSnapshotKept      the content is unchanged, its VolumeSnapshot has ended, and the member has the
//	                       leaf content, or the caller must record that it is missing: lists all three by
//	                       name, and reads the fence's Lease if the leaf content is missing
//	ProveSnapshotUnplaced  the content is placed in no member: lists it by name
//	DroppableIfReleased    an admin abandoned it, or its member was deregistered: reads nothing
package proof
