// Package snapshots visits every state that a snapshot can reach, within bounds, as package model
// does for a claim and its volume.
//
// A world is the state of one VolumeSnapshot of a bound claim in two clusters: the VolumeSnapshot
// and its contents as API objects, the data, a backup of each cluster, and at most one kind of
// object whose cache lags. From each world, Check makes every possible move:
//
//   - a step of Xylem: one reconcile of the real root_snapshot, leaf_snapshot or host_snapshot,
//     killed after its first write;
//   - a step of Kubernetes: the snapshot-controllers of both clusters, and the member's
//     csi-snapshotter with its driver (external-snapshotter, pkg/common-controller and
//     pkg/sidecar-controller);
//   - a disruption: an action of a user or admin, a backup, a restore, a cache that stops, or the
//     member's snapshot-controller and csi-snapshotter if they stop.
//
// It asserts that no step destroys data without evidence (I2), takes a second snapshot for one
// VolumeSnapshot (I3), is rejected by the guards, or writes an object for which another controller
// has a step. Where nothing can move, it asserts that all data is represented in the host or can be
// counted in the member (I1), that nothing is left behind, and that all is settled or a problem is
// reported to the user (I6).
//
// With -short, worlds have at most one disruption instead of two, and the snapshotters are silent only for
// classes with policy Delete.
package snapshots
