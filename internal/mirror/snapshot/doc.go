// Package snapshot translates snapshots: a content of the host to a VolumeSnapshot in a
// member, and the content there to the host's status. It also knows the names and keys by
// which the snapshot-controllers of both clusters work.
//
// In the host, Xylem is what csi-snapshotter is to another driver. The common
// snapshot-controller creates a content for each VolumeSnapshot, and Xylem writes its status.
package snapshot
