// Package observe reads observations of snapshots from the caches of the host and of one member,
// and maps events to requests for root_snapshot and leaf_snapshot. A request is the name of the
// host's content. That name contains the UID of the VolumeSnapshot, which the leaves' stamps have
// too.
package observe
