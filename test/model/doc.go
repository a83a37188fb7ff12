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
// Package snapshots, below this one, does the same for a snapshot.
//
// Check is of one claim of mirror mode. Explorations of their own, with fewer disruptions, look
// at more:
//
//   - TestTwoNames: a second claim, of another name, that may get the first one's volume;
//   - TestRestores: more disruptions of fewer kinds: backups and restores of the member, and claims
//     and host PVs that go;
//   - TestAsking: claims that grow, and that ask for an earlier volume by its name;
//   - TestMembers: a second member, modelled as the first is: the scheduler selects either, a
//     placement moves, and each may have a volume for one claim; a restored host forgets which of
//     them has it;
//   - TestClones: a second claim that is created from the first, whose name another may get; a
//     claim never gets data that are not its source's, or none;
//   - TestAdopting: a volume that the member had before, and host PVs that admins create for it;
//   - TestImports: a volume that the member had before, with and without the consent of its admin,
//     one or two host PVs that an admin creates for it, claims that ask for it by class, by name or
//     by the PV's claimRef, and a claim of the member's own that takes it;
//   - TestPromises: a class that makes promises, and the Pod that has the disk made;
//   - TestWakeups: the controllers' own sources are fed with the change of each move, and a
//     request that has something to do is to be enqueued by the time that nothing else moves;
//   - TestConfluence: all orders of the same moves settle alike, up to names and UIDs, but for
//     the races that are listed with their reasons.
//
// The defects that the design named, the mutants that put them back (package mutation), and what
// finds these:
//
//	F1  other-uid-unmirrored        I2
//	F5  calls-it-surplus            I6: reported as surplus
//	F6  goes-by-names               I2, I6
//	F7  wants-its-own-stamp         I6
//	F8  failed-is-not-ended         I1, I6
//	N1  withdraws-what-is-mirrored  I2
//	N2  freed-at-delete             I6
//	N3  two-mirrors                 I3
//	N4  silent-while-deleted        I6
//	N5  passes-over-deleted         I6
//	N6  forgets-the-restore         I2: TestRestores, as it takes four disruptions
package model
