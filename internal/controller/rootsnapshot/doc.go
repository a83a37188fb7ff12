// Package rootsnapshot carries a content of the host down to a member: it creates the leaf
// VolumeSnapshot, and, when the root has ended, deletes it and its snapshot, on evidence only
// (I2). It records on the host content where the snapshot is, and removes the finalizer at the
// end, as a driver's csi-snapshotter does.
package rootsnapshot
