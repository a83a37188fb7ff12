// Package hostrevision detects that the host was restored while this process ran.
//
// A restore of the host under a running manager ends that manager, because its caches are
// wrong: a watch from a revision that the restored host has not reached yet delivers no events.
// Monitor detects the restore. All members share it, and every replica runs it. It reads the
// host's revision with a list of one object. A revision lower than any resourceVersion seen
// before, including those in a cache, comes from a backup. So everything that Xylem caches must
// be in one etcd: --etcd-servers-overrides of the host's API server may move Events and Leases
// elsewhere, but no other kinds.
//
// Monitor reads the revision at each probe interval, whenever a cache of the host lists or watches
// again (the cache does not get the response of a restored host), and before each destructive step
// (Guard.HostCurrent: the request starts after the live reads that prove the step). Two other signs
// reveal a restore that raises revisions (--bump-revision): the leader's own Lease, and a host's
// record with a lower epoch than before. After the first sign, no fence is held.
//
// The next process must detect the restore too. Before the running process ends, it lowers the
// epoch in the host's record below each member's epoch. Each renewal also writes the highest
// revision of the host to the member's Lease (xylem.io/host-revision), so that a new process
// detects a host with a lower revision and lowers the epoch itself. In both cases, epochs that
// disagree are the evidence. If no manager runs during a restore from a state younger than an
// epoch, nothing can detect it if the restore raised revisions, or if the host exceeds its old
// revision before the member reconnects.
package hostrevision
