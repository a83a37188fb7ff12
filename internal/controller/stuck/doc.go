// Package stuck reports deletions that take longer than expected, each with its cause if known. It
// covers the host's volumes, claims and Pods that concern a member, and the leaf objects there. It
// reads only caches, so it also works while a member is away, and then reports the outage as the
// cause.
//
// It also reports a leaf's deletion on the claim or Pod in the host that needs a leaf with that name,
// and the deletion of a VolumeSnapshotContent on its VolumeSnapshot.
//
// It writes only events. cluster_registration shows the oldest stuck deletion.
package stuck
