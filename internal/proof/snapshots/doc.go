// Package snapshots reads both clusters live before a write to a leaf snapshot or the
// release of a host content, as package proof
// does for volumes. Its Evidence covers the deletion of leaf VolumeSnapshots and their contents, and
// the release of host contents.
//
// # Proofs
//
//	SnapshotEnded    the host's VolumeSnapshot is gone, or being deleted: lists it by name
//	ContentEnded     the host content is not abandoned, has policy Delete, and is being deleted,
//	                 and the deletion of its VolumeSnapshot was announced: lists the content by
//	                 name
//	ContentUnchanged the host content has not changed since it was observed: lists it by name
//	NotRepresented   the host has no content for a VolumeSnapshot: lists contents by name
//	LeafContent      a leaf VolumeSnapshot's content is as expected, or missing: lists it by name
//	LeafSnapshotGone the VolumeSnapshot of a leaf content is gone: lists it by name
//
// SnapshotPlacedHere (before a leaf VolumeSnapshot is created) is not part of an Evidence.
//
// # Evidence
//
// Each kind of Evidence, with its proofs in order, and the writes of root_snapshot that it allows. A
// DestroyingSnapshot also requires SnapshotUnneeded:
//
//	DestroyingSnapshot  ContentEnded, SnapshotEnded: SetContentDelete
//	DestroyingSnapshot  ContentEnded, SnapshotEnded, LeafContent: DeleteSnapshot
//	DestroyingSnapshot  ContentEnded, SnapshotEnded, LeafSnapshotGone: DeleteContent
//	KeepingSnapshot     ContentUnchanged, SnapshotEnded, LeafContent: DeleteSnapshot
//	KeepingSnapshot     SnapshotEnded, LeafContent, NotRepresented, MemberCurrent: DeleteSnapshot
//
// KeptSnapshot collects the proofs of a KeepingSnapshot.
//
// DroppableContent allows root_snapshot and host_snapshot to remove the finalizer from a host content.
// It results from one of:
//
//	SnapshotLeafGone  no leaf exists: lists the leaves by name, reads the fence's Lease
//	SnapshotKept      the content is unchanged, its VolumeSnapshot has ended, and the member has the
//	                  leaf content, or the caller must record that it is missing: lists all three by
//	                  name, and reads the fence's Lease if the leaf content is missing
//	SnapshotUnplaced  the content is placed in no member: lists it by name
//	SnapshotReleased  an admin abandoned it, or its member was deregistered: reads nothing
package snapshots
