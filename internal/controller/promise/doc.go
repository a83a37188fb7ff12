// Package promise contains the controller promise. It immediately binds each claim of a class with
// xylem.io/provisioning: promise, in either binding mode, to a PV of its own. This PV is a promise:
// it has no disk yet. The member to which the claim's first Pod is scheduled provisions the disk
// (root_pvc), and leaf_pv records it on the PV. root_pv deletes the PV; host_volume deletes a
// promise that no member ever had.
//
// The PV's name and claimRef contain the claim's UID, and the host's PV controller binds the two.
// The class's parameters are copied into the volume attributes, because classes can be replaced.
// The state is recorded on the PV itself, each step by one controller, so that provisioning can
// continue after a crash between two steps:
//
//	state      recorded on the PV           next step
//	unused     no label                     When a Pod is scheduled to a member, the member's
//	                                        root_pvc takes placed-in (one member wins).
//	placed     placed-in on the claim, then The member's root_pvc creates the leaf claim, after a
//	           the label, and the Pod that  live read of the PV; root_pod creates the leaf Pod.
//	           it is for (xylem.io/consumer)
//	fulfilled  xylem.io/volume, leaf UID,   leaf_pv records these after the stamp and Retain, and
//	           driver, handle, capacity,    a live read of the leaf PV. The node affinity was nil
//	           node affinity                before.
//	released   phase Released: the claim    root_pv deletes the PV like any other. If it was never
//	           is gone                      fulfilled, the member must have no leaf claim with that
//	                                        UID. If no member had it, host_volume deletes it.
//
// If the last scheduled Pod is deleted before the disk is bound, a placed promise becomes unused
// again: the leaf claim is withdrawn, then the label is removed, then placed-in. Each step follows
// a live list of Pods, and the last two also follow a live read that proves the member empty. If
// the claim is deleted, only the PV's label remains of the placement, and routes the PV's events to
// the member.
//
// hostpv.LeafOfHostVolume treats a fulfilled promise like a mirrored volume. Indexes, orphans, expansion,
// deletion, deregistration and abandoning therefore do not distinguish them. A PV with an
// incomplete record is neither a promise nor a volume: Xylem creates and destroys nothing for it.
//
// While its promise is being created, a claim may be bound to another volume of the same class that
// an admin freed, such as a retained promise. host_volume then deletes the unneeded promise
// (wanted), after live reads of the claim and the PV. The name of a reused promise contains an
// earlier claim's UID, so only the PV's claimRef shows which claim has it. If a reused promise is
// lost, the claim's phase is Lost, which no tenant can write. The promise is then re-created with
// the name in the claim and policy Retain, and the leaf volume does not count as surplus.
//
// # Pods
//
// A Pod is bound before its disk exists, and waits on the virtual node. A Pod that was scheduled to
// a member other than the promise's also waits, and reports this. When the disk exists, leaf_pod
// fails this Pod, so that its owner re-creates it and the scheduler places the new one with the
// disk. A Pod that also uses mirrored claims is bound only once those claims are bound. To break
// this cycle, the Pod counts as scheduled once the scheduler has nominated it and selected its node
// for one of the other claims, whether bound now or not. Schedulers before Kubernetes 1.35 do not
// nominate nodes: in such a host, do not use both kinds of claims in one Pod.
//
// While a claim of a bound Pod has no leaf, the Pod's Pushed condition repeats the message of the
// claim's Placed condition, after the claim's name. When the problem is resolved, the reason
// becomes VolumeAwaited.
//
// # State of the disk
//
// The phase Bound does not show whether there is a disk. The condition xylem.io/Promise does: it is
// True only when there is one. It has reason Broken while the claim's Placed condition, which
// root_pvc maintains, reports why there is none: a class that the member lacks, the latest warning
// about the leaf claim, why the member's scheduler cannot place the Pod, or a lost disk. A disk
// that is not ready yet is reported after five seconds. For a Pod that is bound to a host node,
// waiting_pod reports that this node cannot mount the disk.
//
// # WhenUnused
//
// The disk is released by root_pv of the member that has it (I2, case c), in three steps:
//
//   - If a live list shows no unfinished Pod of the claim that is bound to this member or to no
//     node, root_pv sets the annotation xylem.io/unused-since. Pods of DaemonSets do not count,
//     because Xylem never pushes them. The cluster that a Pod's node belongs to counts, not the
//     node's name. A node that is gone, or that names no cluster, may belong to this member.
//   - If a second list by the same process still shows none, after the grace period by the
//     process's own monotonic clock (idle), root_pv sets the annotation xylem.io/releasing. A new
//     leader starts the grace period again, so another leader's wrong clock can only delay the
//     release.
//   - If a third list after that still shows none, root_pv sets the leaf PV to Delete. From then
//     on, the release cannot be undone, regardless of caches: both annotations are removed only
//     after a live read of the leaf PV, and the leaf claim is deleted only after a live read of the
//     PV.
//
// Before root_pod creates a leaf Pod for a claim with release WhenUnused, it reads the PV live, and
// waits while either annotation is set. A Pod that was bound before the annotation was set is in
// the third list. For a Pod that was bound later, root_pod observes the annotation. No Pod can
// therefore get a disk that is about to be destroyed. unused-since is removed before a Pod runs, so
// that no grace period is measured from a time before this Pod, even if the manager is killed in
// the meantime. The leaf Pods of finished roots, which would block the deletion of the leaf claim,
// are deleted with it.
//
// The promise is unused again when live reads prove that the leaf claim and the leaf PV are gone,
// and both are also gone from the caches on which the decision about a new disk depends. This also
// works if the member was deregistered and registered again in between: leaf_pv restores the
// finalizer while there is a leaf PV, and root_pv does not need the finalizer once there is none.
// If only Pods without a node, or on another node, could need the disk, root_pv checks every five
// seconds, because no event reports their node.
//
// Policy Retain in either cluster takes precedence. A disk without a recorded consumer is kept;
// only a host that was restored to a state before the placement has one. A class with this release
// and policy Retain is rejected, because nothing would ever be released. If the leaf PV's original
// policy is Retain, or if an admin sets the PV to Retain, the PV still gets no node affinity to the
// member, because node affinity cannot change: Pods elsewhere wait, and report where they can run.
// leaf_pod does not fail these Pods, as it does those of a promise with node affinity, because the
// scheduler might place each replacement in the same member again.
//
// # Abandoned
//
// If the member that has a promise is lost, an admin abandons the bound PV (host_volume), or forces
// the deregistration (cluster_registration). If there is no disk yet, or if the disk is released
// when unused, Xylem records that and removes placed-in. The promise then becomes unused again,
// with the cluster's ID in its abandon annotation, and any member may take the claim. Another
// member may fulfill the promise; the volume in the first member is then an orphan. Because of the
// annotation, the first member does not take the promise back merely because of its leaf claim, as
// it does after a restore of the host. It takes the promise back for a Pod that is scheduled there,
// and removes the annotation.
//
// # No second disk
//
// A lagging cache may still show an earlier disk of the promise. Before a controller decides on a
// leaf claim or fulfills the promise, it therefore reads the PV or the leaf PV live.
//
// This is tested by stories/promise_test and the fault scenarios promise*.
package promise
