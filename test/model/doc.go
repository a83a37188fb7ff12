// Package model visits every state that a claim and its volume can reach, within bounds.
//
// A world is what two clusters have of one claim: the claim, its host PVs, its leaf claim, and
// the leaf PVs, as API objects, with the disks behind them, a backup of each cluster, and one
// kind whose cache lags. From each world, Check takes every move that is possible:
//
//   - a step of Xylem: one reconcile of root_pvc, root_pv, leaf_pv or host_volume, as shipped,
//     which reads the world's caches and the world itself, and is killed after its first write;
//   - a step of Kubernetes: the PV controllers, the provisioner, the scheduler, finalizers, and
//     the controllers of another member;
//   - a disruption: what users and admins do, a backup, a restore, a cache that stops.
//
// It stops when no move leads to a world that it has not seen. The number of disruptions on the
// way to a world is bounded, and UIDs that nothing refers to are used again, so there is an end.
//
// In each world it asserts the invariants: no step destroys data without evidence (I2), makes a
// second volume for a claim (I3), or writes without the right to (the guards refuse it); two
// controllers never have a step on one object; and where nothing can move, all is settled, or
// the user has been told (I6).
//
// Promises, adoption, growth and the choice of a member are not in it: the claim is of a class
// of mirror mode, in a member that takes it.
package model
