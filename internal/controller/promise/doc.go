// Package promise is the controller promise. It immediately binds each claim of a class with
// xylem.io/provisioning: promise, in either binding mode, to its own PV: a promise, which has no
// disk yet. The member to which the claim's first Pod is scheduled provisions the disk (root_pvc),
// and leaf_pv records it on the PV. root_pv deletes the PV; host_volume deletes a promise that no
// member ever had.
//
// The PV's name and claimRef have the claim's UID, and the host's PV controller binds the
// two. The class's parameters are copied into the volume attributes, since classes can be
// replaced. The state is recorded on the PV itself, each step by one controller, so that a
// crash between two steps leaves a state that continues:
//
//	unused     no label                     until a Pod is scheduled to a member: root_pvc of
//	                                        that member takes placed-in (one member wins)
//	placed     placed-in; then the member's root_pvc creates the leaf claim, after a live read
//	           label, and the Pod that it   of the PV; root_pod creates the leaf Pod
//	           is for (xylem.io/consumer)
//	fulfilled  xylem.io/volume, leaf UID,   leaf_pv, after stamp and Retain, and a live read of
//	           driver, handle; capacity;    the leaf PV. The node affinity was nil before
//	           node affinity
//	released   Released: the claim is gone  root_pv, as any other volume. If never fulfilled,
//	                                        when the member has no leaf claim of that UID; if no
//	                                        member had it, host_volume
//
// If the last scheduled Pod is deleted before the disk is bound, placed goes back to
// unused: the leaf claim is withdrawn, then the label and placed-in are removed, each after
// a live list of Pods, and the last two after a live read that the member is empty. If the
// claim is deleted, the PV's label is what remains of the placement, and routes the PV's
// events to the member.
//
// For a fulfilled promise, hostpv.LeafOf answers as for a mirrored volume, so indexes, orphans,
// expansion, deletion, deregistration and abandoning do not differ. A PV with an incomplete record
// is neither a promise nor a volume: Xylem creates and destroys nothing for it.
//
// A claim may be bound to another volume while its promise is created: one of the same
// class that an admin freed, such as a retained promise. host_volume deletes what is left
// (wanted), by live reads of claim and PV. The claim that uses a promise again has another
// UID than the PV's name; the PV's claimRef decides. If that PV is lost, the claim is Lost,
// which no tenant can write; the promise is created again under the claim's name, retained,
// and the leaf volume is no surplus.
//
// # Pods
//
// A Pod is bound before its disk exists, and waits on the virtual node. A Pod that was
// scheduled to another member than the promise's waits, and reports that; when the disk
// exists, leaf_pod fails it, so that its owner re-creates it and the scheduler places it
// there. A Pod that also uses mirrored claims is bound only when those are. To break the
// circle, it counts as scheduled once the scheduler has nominated it and selected that node
// for one of the others, bound now or not. Host schedulers before 1.35 do not nominate:
// do not mix there.
//
// While a claim of a bound Pod has no leaf, the Pod's Pushed condition repeats what the claim's
// Placed condition reports, after the claim's name. When it is over, reason VolumeAwaited replaces
// it.
//
// # Bound hides nothing
//
// The condition xylem.io/Promise is True only when there is a disk. It has reason Broken while the
// claim's Placed condition, which root_pvc keeps, says why there is none: the class that the member
// lacks, the latest warning about the leaf claim, why the member's scheduler cannot place its Pod,
// or that a disk was lost. A disk that is not ready yet is reported after five seconds. The
// controller also reports on Pods on nodes of the host that these nodes cannot use the disk.
//
// # WhenUnused
//
// root_pv of the member that has the disk releases it (I2, case c) in three steps:
//
//   - A live list has no unfinished Pod of the claim that is bound here or to no node (Pods
//     of DaemonSets, which are never pushed, do not count): annotation
//     xylem.io/unused-since. The cluster that a Pod's node names counts, not the node's
//     name; a node that is gone, or names no cluster, may be this one's.
//   - A second list of the same process, after the grace by its own monotonic clock (idle),
//     has none: annotation xylem.io/releasing. A new leader starts the grace again, so
//     another one's clock can only delay.
//   - A third list after that has none: the leaf PV is set to Delete. The release cannot be undone
//     from here, regardless of caches: both annotations are removed only after a live read of the
//     leaf PV, and the leaf claim is deleted only after one of the PV.
//
// root_pod reads the PV live before it creates a leaf Pod of such a claim, and waits while
// either annotation is set. A Pod that was bound before the annotation is in the third
// list; one that was bound after it sees the annotation. So none ever gets a disk that is
// about to be destroyed. unused-since is removed before its Pod runs, so that no grace is
// measured from before it, even if the manager ends in the meantime. The leaf Pods of finished
// roots, which would hold the leaf claim, are deleted with it.
//
// When leaf claim and leaf PV are proven gone by live reads, and gone from the caches that a new
// disk would be decided on, the promise is unused again. That continues with a member that was
// deregistered in between and is back: leaf_pv puts the finalizer back while there is a leaf PV,
// and root_pv needs none to end what is gone. If only Pods without a node, or on another one, could
// need the disk, root_pv checks every five seconds, because no event reports their node.
//
// Retain in either cluster takes precedence. A disk without a recorded consumer, which takes
// a host restored to a state before the placement, is kept. A class with this release and policy Retain
// is rejected, since nothing would ever be released. If the member retains, or an admin sets the PV
// to Retain, the PV gets no affinity to the member, since node affinity cannot change: Pods
// elsewhere wait, and report where to run. They are not failed like those of a pinned promise,
// since the scheduler might place each new one in the same member again.
//
// # Abandoned
//
// If the member that has a promise is lost, an admin abandons the bound PV (host_volume),
// or forces the deregistration (cluster_registration). If there is no disk yet, or it was
// not to outlive its Pods, that is recorded, and placed-in is removed. Then the promise becomes
// unused again, with the ID of that cluster in its abandon annotation: from here on, the claim
// is the members' to place. Another member may fulfill the promise; what was left in the first
// one is an orphan. Because of that annotation, the first member does not take the promise
// back for its leaf claim alone, as it does in a restored host; it does for a Pod that is
// scheduled there, which removes the annotation.
//
// # Never twice
//
// A decision on a leaf claim or a fulfillment reads the PV, or the leaf PV, live first: a
// promise may have had a disk before, which a lagging cache still shows.
//
// Shown by stories/promise_test and the fault scenarios promise*.
package promise
