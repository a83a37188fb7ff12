// Package rootpvc pushes claims to the members: it records the member in which a root claim is
// placed, creates the leaf claim there, expands and labels it with the root, and withdraws leaf claims
// that were never bound. It writes leaf claims, and the root's placed-in annotation and Placed
// condition. root_pv deletes leaf claims of bound volumes.
//
// # Placing
//
// rootpvc places a claim once the host's PV controller has set the annotation
// volume.kubernetes.io/storage-provisioner to csi.xylem.io. Other provisioners wait for this
// annotation, too. The PV controller writes it milliseconds after the scheduler has selected a
// node. If rootpvc did not wait, one of the two writes would often fail with a conflict. If the PV
// controller's write failed, the user would see ProvisioningFailed on the claim. rootpvc waits for
// one second at most, because another conflict may delay the PV controller's write.
//
// # Selecting a node
//
// A leaf claim whose class waits for its first consumer normally gets its node from the member's
// scheduler, for the leaf Pod that root_pod creates. If an importer or a volume populator wrote the root's
// selected-node, and the host's scheduler has no Pod of the claim to place, no leaf Pod will come: its Pods,
// if any, name their node. After ten seconds without such a Pod, and a live list of Pods, rootpvc selects
// one of the nodes that the member's scheduler could select for a Pod without requirements, and that can reach
// the other volumes of the claim's Pod, if it has one. If a scheduler wrote
// selected-node, rootpvc waits for the next Pod, because that Pod's requirements determine the node. A tenant
// who writes selected-node gains nothing: the root's class and the registration's rules must allow the
// member (I8).
//
// # Withdrawing
//
// rootpvc removes a placement once the member has no leaf claim. A provisioner may still be
// creating a volume for a leaf claim that was withdrawn. Xylem never mirrors that volume (I3):
// the member destroys it if its policy is Delete, and otherwise Xylem reports it.
//
// If a leaf claim's root is gone, and live reads show that no host PV represents its volume,
// rootpvc deletes the leaf claim and keeps the volume. The name is then free again. If a host PV
// has the volume's handle but otherwise does not match it, the leaf claim stays, and rootpvc emits
// the event VolumeKept on the PV. While destruction is suspended, for example after a restore of
// the host, a leaf claim without a root keeps its volume, which proves that nobody released the
// volume. A leaf claim that is older than the restore never takes its volume with it: the host may
// have lost the claim, so leaf_pv retains the volume first. rootpvc deletes a leaf claim that has
// lost both its root and its volume.
//
// # Adopting
//
// A claim may request, in spec.volumeName, the leaf volume of an earlier claim with the same
// namespace and name, if the host has no PV for that volume. Anyone who can create a claim can set
// this field, so it is only a request. Xylem grants the request if both of these conditions hold:
//
//   - The leaf claim still holds the volume, so nobody released it. The host lost both the claim
//     and the PV, for example in a restore.
//   - The namespace is the same object as when leaf_pv stamped the volume
//     (xylem.io/root-namespace-uid), so the tenant is the same.
//
// Otherwise, an admin must allow it with the annotation xylem.io/adopt on the registration (volume
// names, or *). A re-created namespace may belong to another tenant. A volume whose retained host
// PV was deleted is released, and even within a single cluster, only an admin can undo that.
//
// Class, size, access modes and volume mode must always match. If another member has an
// orphan with the same name and root, the claim gets neither volume, because only an admin can
// decide which one is right. Adopting does not wait until an admin confirms HostRestored,
// because it destroys nothing. A live read of the name proves that the old root's UID is gone.
// Only the leaf claim's stamp changes, so the volume is never unbound and never passes through
// Available. A released volume first gets its host PV, and is then treated as a reused volume.
//
// A restore may bring back a claim with its old UID but without its placement. Such a claim is
// placed where its leaf claim is, if the leaf claim is older than a confirmed restore of the host,
// or if an admin allows its volume with xylem.io/adopt. Xylem places a claim before it creates the
// leaf claim. Therefore, without a restore, someone in the member must have created the leaf claim,
// including its stamp, to attract the root claim (I8). In that case, the claim reports
// AdoptionUnconfirmed, and Xylem writes nothing, except that it withdraws an unbound leaf claim.
// The epoch in the member's Lease also shows a restore, but the member's admin can write it. Until
// the host's admin confirms such a restore, Xylem relies on it only if the scheduler has selected
// this member anyway.
//
// If the scheduler selects another member for such a claim, that member's controller first
// looks for the leaf claim in all other members, with live reads. It does so if any member has
// detected a restore of the host. After a start, it first waits while a member may still detect one.
// While one of them has the leaf claim, or cannot be read, the claim reports PlacementUnconfirmed, and
// Xylem writes nothing (I3). The same check precedes the creation of a leaf claim whose placement may
// be outdated. In mirror mode, such a record is removed.
package rootpvc
