// Package observe reads observations of snapshots from the caches of the host and of one member,
// and maps events to requests for root_snapshot and leaf_snapshot. A request is the name of a host
// content. The name contains the VolumeSnapshot's UID, which is also in the leaves' stamps.
package observe
