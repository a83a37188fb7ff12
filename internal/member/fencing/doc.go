// Package fencing implements the fence of a member, which decides which manager may write there.
// From the fence's epoch and records, it also detects that the member or the host was restored.
//
// The fence is a Lease in the member's namespace xylem-system. Its name is the host's cluster ID,
// and the leading manager holds it. Renewing the Lease also probes the connection. Held returns nil
// until two thirds of the Lease's duration have passed since the last renewal was sent, by the
// monotonic and the wall clock. If another manager holds the Lease, AcquireLease waits until the Lease
// has not changed for its whole duration, by this process's clock. A holder that keeps renewing it
// is a clone (HostCloned).
//
// Each leadership takes a new epoch. It writes the intended epoch to the host's record, then the
// Lease in the member, then the reached epoch to the record, so that a crash between these writes
// causes no disagreement. A write to the member may arrive after its sender has stopped waiting for
// the response. The record therefore keeps all epochs that the host has intended since its current
// one, and the member may have any of them. Epochs that disagree mean that one of the clusters was
// restored. The manager then takes the fence but keeps the epochs, because they are the evidence, and
// CheckNotSuspended fails until the registration is annotated with the token that its condition names.
//
// A leadership may last for months, so last night's backup may have the same epoch. The manager
// therefore also raises the epoch within a leadership, every --fence-epoch-interval (5 min). The
// epochs then disagree if a cluster is restored from an older state. If a member is restored from a
// more recent state, the manager that has renewed the Lease since then detects the restore with its
// next probe. If it has not, the probe compares revisions: after a restore, the member's revision of a
// kind is lower than the resourceVersions of later objects that the caches received (RecordRevision). Such a
// restore remains undetected if the member's writes have reached these resourceVersions again, or if
// they are not numbers. The manager raises the epoch in the host's record, so that the next manager
// detects the restore too. Until then, a step that uses the presence or absence of member objects as evidence
// also reads the Lease (proof.CheckMemberCurrent), after the reads that it depends on. Such steps
// withdraw or delete a leaf claim that was never mirrored, or release a host PV whose leaf is gone.
//
// A manager that stops raises the epoch once more (TakeFinalEpoch), so that every backup of the host from
// before the stop has a lower epoch. If a manager is killed, and no manager runs during a restore
// from a state younger than the interval, only the host's revision can show the restore. A restore
// that increases the revisions then remains undetected.
//
// Each registration holds the fence separately: the holder identity names the process and the
// registration's UID. The host's record (annotation xylem.io/registration) names the registration
// that owns the cluster. It is written with its resourceVersion when a member is admitted. The
// record also contains the times of restores, by the member's clock, and keeps them after the
// confirmation. The member's Lease also contains the time of the member's last restore, so that a
// restore of the host cannot remove this time. A member that was away from before the backup until
// after the restore of the host cannot detect the restore. Package fleet therefore applies a restore
// that any member has detected to all of them (restores.RestoreTimes.HostAnywhere). After a start, until the fence of
// each member was read or the member is lost, root_pvc neither places claims that are older than the
// process nor destroys their volumes (restores.RestoreTimes.HostUnknownUntil).
//
// A replica's writes to the host are fenced too, by the replica's own clock. The host's transport
// rejects every change once the leader election Lease has not been renewed for 10 s. So a leader
// that resumes after its Lease has expired writes nothing before it detects the loss. Only package
// heartbeat also writes on replicas that do not lead.
//
// Its part epoch reads, writes and compares the fence's epochs in the Lease in a member and in the
// host's record. Epochs that disagree show that one of the clusters was restored. All functions are
// pure.
//
// Its part hostrecord keeps the host's record of a member: a Lease that outlives the
// member's registration.
//
// Its part hostrevision detects that the host was restored while this process ran.
//
// If the host is restored under a running manager, the manager exits, because its caches are wrong:
// a watch from a revision that the restored host has not reached yet delivers no events. Monitor
// detects the restore. All members share it, and every replica runs it. It reads the host's
// revision with a list of one object. A revision lower than any resourceVersion seen before,
// including those in a cache, comes from a backup. This works only if one etcd stores all
// kinds that Xylem caches. The host's API server may store Events and Leases in another one
// (--etcd-servers-overrides), but no other kinds.
//
// Monitor reads the revision at each probe interval, whenever a cache of the host lists or watches
// again (a restored host's response does not reach the cache), and before each destructive step
// (Guard.CheckHostCurrent: the request starts after the live reads that prove the step). Two other signs
// reveal a restore that raises revisions (--bump-revision): the leader's own Lease, and a host
// record with a lower epoch than before. After the first sign, the process holds no fence.
//
// The next process must detect the restore too. Before the running process ends, it lowers the
// epoch in the host's record below each member's epoch. Each renewal also writes the highest
// revision of the host to the member's Lease (xylem.io/host-revision), so that a new process
// detects a host with a lower revision and lowers the epoch itself. In both cases, epochs that
// disagree are the evidence. A restore from a state younger than an epoch, while no manager runs,
// cannot be detected if it raised revisions, or if the host exceeds its old revision before the
// member reconnects.
//
// Its part restores records when the host and a member were last restored, as detected by the fences of
// all members.
package fencing
