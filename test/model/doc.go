// Package model visits every state that a claim and its volume can reach, within bounds.
//
// A world is the state of one claim in two clusters: the claim, its host PVs, its leaf claim, and
// the leaf PVs, as API objects. It also contains the disks of the leaf PVs, a backup of each
// cluster, and at most one kind of object whose cache lags. From each world, Check makes every
// possible move:
//
//   - a step of Xylem: one reconcile of the real root_pvc, root_pv, leaf_pv or host_volume, which
//     reads the world's caches and the world itself, and is killed after its first write. If root_pv makes
//     a second write, which may destroy data, it must be safe after any disruption between the two;
//   - a step of Kubernetes: the PV controllers, the provisioner, the scheduler, finalizers, and
//     the controllers of another member;
//   - a disruption: an action of a user or admin, a backup, a restore, or a cache that stops.
//
// Check stops when no move leads to a new world. It terminates, because the number of disruptions
// on the path to a world is limited, and unreferenced UIDs are reused.
//
// In each world, it asserts the invariants: no step destroys data without evidence (I2), creates a
// second volume for a claim (I3), or is rejected by the guards. Two controllers never have a step
// for the same object. A world without moves is settled, or a problem is reported to the user (I6).
//
// Package snapshots, below this one, does the same for a snapshot. Package moves does it for the command that
// moves a claim, with rules instead of the manager. TestNeeds does the reverse: it runs the manager, and makes
// the command's writes without its Pods.
//
// TestCheck covers one claim in mirror mode. Other tests, with fewer disruptions, cover more:
//
//   - TestTwoNames: a second claim with another name, which may get the first claim's volume;
//   - TestRestores: more disruptions of fewer kinds, namely backups and restores of the member, and
//     deletions of claims and host PVs;
//   - TestAsking: claims that are expanded, and that request an earlier volume by its name;
//   - TestMembers: a second member, modeled like the first. The scheduler selects either, a
//     placement changes, and each member may have a volume for the same claim. A restored host loses
//     the record of which member has it;
//   - TestClones: a second claim that is cloned from the first, while another claim may get the first
//     claim's name. A clone never gets an empty disk, or data that is not its source's;
//   - TestNeeds: the features that need the same data meet. The first claim's VolumeSnapshot is to be taken,
//     the second claim is a clone of the first, and the member has a foreign volume that an admin can adopt. A
//     backup tool creates the first claim's leaf claim again, and fills its disk. With promises, the clone is
//     Bound to a promise, and the first claim's disk may be released with its last Pod. Without, a user moves
//     the first claim, because promises cannot be moved: the foreign volume may be bound to the copy's claim.
//     No step destroys data that another feature needs;
//   - TestAdopting: a member's existing volume, and host PVs that admins create for it;
//   - TestImports: a member's existing volume, with and without the consent of the member's admin;
//     one or two host PVs that an admin creates for it; claims that request it by class, by name or
//     by the PV's claimRef; and a claim of the member itself that takes it;
//   - TestPromises: a class in promise mode, and the Pod for which the disk is provisioned;
//   - TestEdits: users and admins who remove or change the annotations, labels, claimRefs, policies and
//     finalizers that Xylem and Kubernetes maintain, and who delete classes. TestEditsElsewhere adds one
//     such edit to the worlds of the other tests;
//   - TestWakeups: the controllers' own sources receive the events of each move. By the time no other
//     move is possible, they must have enqueued every request that has a step;
//   - TestConfluence: all orders of the same moves lead to the same end, apart from names and UIDs,
//     except for the listed races.
//
// With -short, the searches have smaller bounds. Both bounds of each search are in check_test.go (package
// bound). The mutants that only the full search finds are marked Full in package mutation, and TestMutants
// checks each mark.
//
// The following table lists the defects that the design named, the mutants that re-create them
// (package mutation), and what finds the mutants:
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
//	N6  forgets-the-restore         I2: TestRestores, because it takes four disruptions
//	N7  forgets-the-lost-claim      I2
package model
