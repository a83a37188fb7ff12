// Package hostsnapshot contains the controller host_snapshot. It handles the host's
// VolumeSnapshotContents for which no member is responsible, because their source is not a member's
// volume, their member is away or no longer registered, or an admin abandons them. It writes
// nothing to members.
package hostsnapshot
