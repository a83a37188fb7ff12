// Package snapshots visits every state that a snapshot can reach, within bounds, as package model
// does for a claim and its volume.
//
// A world is what two clusters have of one VolumeSnapshot of a bound claim: the VolumeSnapshot and
// its contents on both sides, as API objects, with the data behind them, a backup of each cluster,
// and one kind whose cache lags. From each world, Check takes every move that is possible:
//
//   - a step of Xylem: one reconcile of root_snapshot, leaf_snapshot or host_snapshot, as shipped,
//     which is killed after its first write;
//   - a step of Kubernetes: the snapshot-controllers of both sides, and the member's
//     csi-snapshotter with its driver (external-snapshotter, pkg/common-controller and
//     pkg/sidecar-controller);
//   - a disruption: what users and admins do, a backup, a restore, a cache that stops.
//
// It asserts that no step destroys data without evidence (I2), takes a second snapshot for one
// VolumeSnapshot (I3), is refused by the guards, or is another controller's, too; and where nothing
// can move, that data are represented in the host or can be counted in the member (I1), that
// nothing is left behind, and that all is settled, or the user has been told (I6).
package snapshots
