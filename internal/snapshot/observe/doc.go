// Package observe reads observations of snapshots from the caches of the host and of one member,
// and maps events to the requests of root_snapshot and leaf_snapshot. A request has the name of
// the content in the host, which has the UID of the VolumeSnapshot: the leaves have that UID too.
package observe
