// Package hostrevision notices that the host was restored under this process.
//
// A host that goes back under a running manager ends that manager, since no cache of it can
// be trusted: a watch from a revision that the restored host has not reached yet delivers
// nothing. Monitor notices it. All members share it, and every replica runs it: one list of
// one object reads the host's revision. A revision behind any resourceVersion seen before,
// in a cache too, is from a backup. So everything that Xylem caches must be in one etcd:
// --etcd-servers-overrides of the host's API server may move Events and Leases elsewhere,
// and nothing else.
//
// It reads the revision at each probe interval, whenever a cache of the host lists or
// watches again (the cache does not get the answer of a restored host), and before each
// step that destroys (Guard.HostCurrent: the request starts after the live reads that prove
// the step). The leader's own Lease is a second sign: it shows a restore that raises
// revisions (--bump-revision). A record whose epoch went back is a third. From the first
// sign on, no fence is held.
//
// The next process must know too. The running one puts the host's record behind each member
// before it ends. Each renewal also leaves the highest revision of the host in the member's
// Lease (xylem.io/host-revision), so that a new process finds a host that is behind it, and
// puts the record behind the member itself. Epochs that disagree are the evidence either
// way. Nobody can notice a restore, while no manager runs, from a state younger than an
// epoch, if the restore raised revisions, or if the host has passed its old revision before
// the member is connected again.
package hostrevision
