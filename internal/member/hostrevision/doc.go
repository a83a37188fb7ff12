// Package hostrevision detects that the host was restored while this process ran.
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
package hostrevision
