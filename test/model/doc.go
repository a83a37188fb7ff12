// Package model visits every state that a claim and its volume can reach, within bounds.
//
// A world is the state of one claim in two clusters: the claim, its host PVs, its leaf claim, and
// the leaf PVs, as API objects. It also has the disks of the leaf PVs, a backup of each cluster,
// and one kind with a lagging cache. From each world, Check takes every possible move:
//
//   - a step of Xylem: one reconcile of root_pvc, root_pv, leaf_pv or host_volume, as shipped,
//     which reads the world's caches and the world itself, and is killed after its first write;
//   - a step of Kubernetes: the PV controllers, the provisioner, the scheduler, finalizers, and
//     the controllers of another member;
//   - a disruption: what users and admins do, a backup, a restore, a cache that stops.
//
// It stops when no move leads to a new world. It terminates, because the number of disruptions
// before a world is bounded, and unreferenced UIDs are reused.
//
// In each world it asserts the invariants: no step destroys data without evidence (I2), creates a
// second volume for a claim (I3), or is rejected by the guards. Two controllers never have a step
// on one object. A world without moves is settled, or a problem is reported to the user (I6).
//
// Package snapshots, below this one, does the same for a snapshot.
//
// Check is of one claim of mirror mode. Explorations of their own, with fewer disruptions, look
// at more:
//
//   - TestTwoNames: a second claim with another name, which may get the first one's volume;
//   - TestRestores: more disruptions of fewer kinds: backups and restores of the member, and
//     deletions of claims and host PVs;
//   - TestAsking: claims that are expanded, and that request an earlier volume by its name;
//   - TestMembers: a second member, modelled like the first: the scheduler selects either, a
//     placement changes, and each may have a volume for one claim; a restored host forgets which
//     of them has it;
//   - TestClones: a second claim that is cloned from the first, while another claim may get the first
//     one's name; a clone never gets other data than its source's, or an empty disk;
//   - TestAdopting: an existing volume of the member, and host PVs that admins create for it;
//   - TestImports: an existing volume of the member, with and without the consent of its admin; one
//     or two host PVs that an admin creates for it; claims that request it by class, by name or by
//     the PV's claimRef; and a foreign claim of the member that takes it;
//   - TestPromises: a class in promise mode, and the Pod for which the disk is provisioned;
//   - TestWakeups: the controllers' own sources receive the change of each move, and must enqueue
//     every request that has a step before no other move is possible;
//   - TestConfluence: all orders of the same moves lead to the same end, up to names and UIDs, except
//     for the listed races.
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
