// Package rootpvc pushes claims down: it records in which member a root claim is placed,
// creates the leaf claim there, expands it with the root, and withdraws what was never
// bound. It writes the root's placed-in annotation and its Placed condition, and leaf
// claims. root_pv deletes leaf claims of bound volumes.
//
// # Placing
//
// A claim is placed when the host's PV controller has written that csi.xylem.io is to
// provision it (volume.kubernetes.io/storage-provisioner), which other provisioners wait
// for too. That is milliseconds after the scheduler's choice. Before, one of the two writes
// met with a conflict, and if that was the PV controller's, the user saw ProvisioningFailed
// on their first claim. rootpvc waits for it for one second at most, since that write may
// have met with another conflict.
//
// # Withdrawing
//
// Removing a placement requires that the member has no leaf claim, not that no provisioner
// still works for one that was withdrawn: what that provisions is never mirrored (I3); the
// member's own policy destroys it, or it is reported.
//
// A leaf claim whose root is gone, and whose volume no host PV represents by a live list of
// all of them, is deleted, and the volume kept: its name is free again. If a host PV has
// the volume's handle and is not in order, the claim stays, and the PV has an event
// VolumeKept. While destruction is suspended, as after a restore of the host, such a claim
// continues to hold its volume, which is the evidence that nobody released it. One that has
// lost its volume as well is deleted.
//
// # Adopting
//
// A claim may name, in spec.volumeName, the leaf volume that an earlier claim of its
// namespace and name had, while the host has no PV for it. Anybody who may create a claim
// can write that field, so it requests, and allows nothing. It is allowed if the leaf claim
// still holds the volume (nobody released it: the host lost both, as by a restore) and the
// namespace is the same object as when leaf_pv stamped the volume
// (xylem.io/root-namespace-uid): then it is the same tenant. Otherwise an admin must allow
// it with the annotation xylem.io/adopt on the registration (volume names, or *): a
// re-created namespace may be another's, and a volume whose retained host PV was deleted
// was released, which takes an admin to undo within a single cluster, too.
//
// Class, size, access and volume mode must agree in any case. If another member has an
// orphan of the same name and root, none is given: only admins can say which is right.
// HostRestored's own confirmation is about destruction and not required: adopting destroys
// nothing. A live read of the name proves the old root's UID gone. Only the leaf claim's
// stamp changes: the volume is never unbound, and never passes through Available. A
// released volume gets its host PV first, and continues as a volume used again.
//
// A claim that a restore brings back with its old UID, and without its placement, is placed where its
// leaf claim is, if that is older than a confirmed restore of the host, or an admin allows
// its volume by xylem.io/adopt. Xylem places a claim before it creates the leaf claim. So
// without a restore, somebody in the member created it, stamp included, to have the claim
// there (I8): the claim reports AdoptionUnconfirmed, and nothing is written; an unbound
// leaf claim is withdrawn. The epoch in the member's Lease shows a restore too, and the
// member's admin can write that: before it is confirmed, it counts only if the scheduler
// has chosen this member anyway.
//
// If the scheduler chooses another member for such a claim, that one asks all others, by live
// reads, for its leaf claim before it places the claim. While one has it, or can't be asked, the
// claim reports PlacementUnconfirmed, and nothing is written (I3).
package rootpvc
