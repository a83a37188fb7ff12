// Package snapshot translates snapshots: a host content to a VolumeSnapshot in a member, and the
// content there to the host's status. It also defines the names and keys that the
// snapshot-controllers of both clusters use.
//
// In the host, Xylem does what csi-snapshotter does for other drivers. The snapshot-controller
// creates a content for each VolumeSnapshot, and Xylem writes its status.
package snapshot
