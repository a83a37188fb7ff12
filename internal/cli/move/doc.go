// Package move implements `kubectl xylem move`, which moves the data of a claim, or of the claims
// of a StatefulSet, to another member while no Pod uses them.
//
// The command runs with the user's permissions in the host, and does not connect to the members. It
// creates a second claim, which the scheduler places in the other member, and one Pod for each of
// the two claims. It copies the data through the two Pods' exec streams.
//
// A ConfigMap in the claim's namespace records the move. Each run reads the record and the objects
// again, so a run can be killed at any write. Two runs never act concurrently: each run records its
// ID first, and every later write of the record fails if another run has taken over.
//
// The order of the steps has these properties:
//
//   - The claim and its disk do not change until both disks have the same checksum.
//   - While the command deletes the claim, the command's own Pod keeps the claim from disappearing.
//     No other Pod can start with a claim that is being deleted: the scheduler, the kubelet and
//     Xylem's root_pod all reject such a Pod. After the deletion has begun, the command calculates
//     the checksum again. So no write reaches the old disk after its last checksum, and the two
//     disks never diverge.
//   - The copy overwrites only a volume that the other member provisioned for the second claim. No
//     existing volume of the host is bound to that claim (pvc.ContradictorySelector). If the member binds the
//     leaf claim to one of its own existing volumes, the move ends before it writes to the volume, and
//     sets the volume's policy to Retain.
//   - Both PersistentVolumes in the host have policy Retain before the claim is deleted, and the
//     old volume keeps that policy.
//
// move.go contains the sequence of a move. Each step starts from the record and from the current
// objects in the host, so another run can continue after a run ends at any write. Before the first
// write, plan.go checks everything that the move needs. destroy.go destroys the disks that finished
// moves kept, but none while the claim may have lost its current disk. Package objects contains what a
// move writes, and package transfer copies the data.
//
// The labels and annotations of a move have the prefix move.xylem.io/, because only the manager can
// write keys with the prefix xylem.io/. No controller reads labels or annotations with the prefix
// move.xylem.io/.
package move
