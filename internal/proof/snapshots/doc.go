// Package snapshots reads both clusters live before a write to a leaf snapshot, as package proof
// does for volumes. Its Evidence covers the deletion of leaf VolumeSnapshots and their contents.
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
//
// SnapshotLeafGone (before a host content is released: its leaves, the fence's Lease) and
// SnapshotPlacedHere (before a leaf VolumeSnapshot is created) are not part of an Evidence.
//
// # Evidence
//
// Each kind of Evidence, with its proofs in order, and the writes of root_snapshot that it allows:
//
//	DestroyingSnapshot  ContentEnded, SnapshotEnded: SetContentDelete and DeleteContent
//	DestroyingSnapshot  ContentEnded, SnapshotEnded, LeafContent: DeleteSnapshot
//	KeepingSnapshot     ContentUnchanged, SnapshotEnded, LeafContent: DeleteSnapshot
//	KeepingSnapshot     SnapshotEnded, LeafContent, NotRepresented, MemberCurrent: DeleteSnapshot
package snapshots
