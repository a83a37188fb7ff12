// Package moves visits the states that the move of a claim can reach, within bounds. It runs the
// real `kubectl xylem move pvc`, and not a copy of its rules.
//
// A world contains the host's objects, the disks in two members with their content, and what the
// user last wrote. It contains no running command. From each world, Check runs each command (move,
// --undo and --delete-source) without a disruption, and with each disruption before each request
// of the command: the command is killed, a Pod starts to use the claim, a member is away, another
// run takes over, and so on. The number of disruptions on the
// path to a world is limited. Restores of the host are checked separately, without the other
// disruptions.
//
// The host executes the requests, as an API server does. In one search, Kubernetes and Xylem act
// after each request. In the other, they act only while the command waits.
//
// What Xylem's manager does to a disk is stated here as rules (see settle), because package model
// checks its controllers, and TestNeeds there also while a move swaps two disks. The rules are: a disk is destroyed only for a claim that somebody deleted
// in the host as it is now, and never before an admin has confirmed a restore. If a restore lost
// the claim that last used a disk, the disk is kept.
//
// Check asserts that:
//
//   - a disk that the target's admin, or the host's, offers to any claim keeps its data;
//   - the data that the user wrote last is always on a disk that exists, in any world, unless the
//     user has consented to its destruction;
//   - a Pod gets the data that the user wrote last, unless the user undid the move or a cluster was
//     restored;
//   - after a move or an undo without a disruption, nothing else is left;
//   - once disruptions end, either the move or its undo succeeds.
//
// TestCheck covers one disruption of any kind, TestRestores the restore of a host to any state of a
// move, and TestExisting an existing disk that the copy's claim could be bound to. With -short, they
// run the commands without disruptions and restores, which finds only the mutants that package
// mutation does not mark Full. The model does not cover restores of a member, block devices, or StatefulSets.
package moves
