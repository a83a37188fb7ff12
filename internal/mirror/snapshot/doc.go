// Package snapshot translates snapshots: a host VolumeSnapshot to one in a member, and the content
// in the member to the status of the host content. It also defines the names and keys that the
// snapshot-controllers of both clusters use.
//
// In the host, Xylem does what csi-snapshotter does for other drivers. The host's
// snapshot-controller creates a content for each VolumeSnapshot, and Xylem writes the content's
// status.
package snapshot
