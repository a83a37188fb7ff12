// Package rootsnapshot mirrors host contents to a member. It creates the leaf VolumeSnapshot. When
// the root is gone or being deleted, it deletes the leaf and, only with evidence, the snapshot
// (I2). It records the snapshot's location on the host content and finally removes the finalizer,
// as a driver's csi-snapshotter does.
package rootsnapshot
