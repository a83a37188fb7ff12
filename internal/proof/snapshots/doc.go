// Package snapshots reads both clusters live before a write to a leaf snapshot or the
// release of a host content, as package proof
// does for volumes. Its Evidence covers the deletion of leaf VolumeSnapshots and their contents, and
// the release of host contents.
//
// # Proofs
//
//	ProveSnapshotEnded    the host's VolumeSnapshot is gone, or being deleted: lists it by name
//	ProveContentEnded     the host content is not abandoned, has policy Delete, and is being deleted,
//	                 and the deletion of its VolumeSnapshot was announced: lists the content by
//	                 name
//	ProveContentUnchanged the host content has not changed since it was observed: lists it by name
//	ProveNotRepresented   the host has no content for a VolumeSnapshot: lists contents by name
//	ProveLeafContent      a leaf VolumeSnapshot's content is as expected, or missing: lists it by name
//	ProveLeafSnapshotGone the VolumeSnapshot of a leaf content is gone: lists it by name
//
// ProveSnapshotPlacedHere (before a leaf VolumeSnapshot is created) is not part of an Evidence.
//
// # Evidence
//
// Each kind of Evidence, with its proofs in order, and the writes of root_snapshot that it allows. A
// DestroyingSnapshot also requires SnapshotUnneeded:
//
//	DestroyingSnapshot  ProveContentEnded, ProveSnapshotEnded: SetContentDelete
//	DestroyingSnapshot  ProveContentEnded, ProveSnapshotEnded, ProveLeafContent: DeleteSnapshot
//	DestroyingSnapshot  ProveContentEnded, ProveSnapshotEnded, ProveLeafSnapshotGone: DeleteContent
//	KeepingSnapshot     ProveContentUnchanged, ProveSnapshotEnded, ProveLeafContent: DeleteSnapshot
//	KeepingSnapshot     ProveSnapshotEnded, ProveLeafContent, ProveNotRepresented, MemberCurrent: DeleteSnapshot
//
// ProveLeafSnapshotDataKept collects the proofs of a KeepingSnapshot.
//
// DroppableContent allows root_snapshot and host_snapshot to remove the finalizer from a host content.
// It results from one of:
//
//	ProveSnapshotLeafGone  no leaf exists: lists the leaves by name, reads the fence's Lease
//	ProveSnapshotKept      the content is unchanged, its VolumeSnapshot has ended, and the member has the
//	                  leaf content, or the caller must record that it is missing: lists all three by
//	                  name, and reads the fence's Lease if the leaf content is missing
//	ProveSnapshotUnplaced  the content is placed in no member: lists it by name
//	DroppableIfReleased  an admin abandoned it, or its member was deregistered: reads nothing
package snapshots
