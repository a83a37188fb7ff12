// Package fencing holds the fence in a member, which decides which manager may write there,
// and notices restores of the member or the host by its epoch and its records.
//
// The fence is a Lease in the member's xylem-system, named after the host's cluster ID,
// held by the leading manager. Renewing it is the probe. Held is true until two thirds of
// its duration after the last renewal was sent, by the monotonic and the wall clock. A
// holder that is not us is waited for until its Lease has not changed for the whole
// duration by our own clock; one that continues to renew is a clone (HostCloned).
//
// Each leadership takes a new epoch: first the intent in the host's record, then the Lease
// in the member, then the fact in the record, so that a crash in between is no
// disagreement. Epochs that disagree mean that one of the clusters was restored: the fence
// is held, the epochs stay as they are (they are the evidence), and MayDestroy fails until
// the registration is annotated with the token that its condition names.
//
// A leadership may last for months, and a backup of last night is of the same one. So the
// epoch also grows within it, every --fence-epoch-interval (5 min): a cluster that is
// restored from an older state disagrees. If a member goes back by less, the manager that
// had renewed the Lease since notices at its next probe, and puts the host's record ahead,
// so that the next manager knows too. Until then, a step that takes what the member has or
// lacks as evidence also reads the Lease (proof.MemberCurrent), after the reads that it is
// decided on: withdrawing or deleting a leaf claim that was never mirrored, and releasing a
// host PV whose leaf is gone. Nobody can notice a restore, while no manager runs, from a
// state younger than the interval.
//
// A fence is held for one registration: the holder is the process and the registration's
// UID. The host's record (annotation xylem.io/registration) says which registration has a
// cluster; it is written with its resourceVersion when a member is admitted. The times of
// restores are in the record too, by the member's clock, and outlive the confirmation. The
// member's Lease has its own time as well, which a restore of the host cannot withdraw.
//
// What a replica writes to the host is fenced too, by its own clock: the host's transport
// rejects every change once the leader election's Lease was not renewed for 10 s. So a
// leader that was frozen beyond its Lease and thaws writes nothing before it has noticed.
// Only heartbeat is not limited to the leader.
package fencing
