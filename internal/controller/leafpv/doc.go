// Package leafpv mirrors the volumes of leaf claims up: it stamps the leaf PV and sets its
// policy to Retain, in one patch, then creates the host PV that binds the root claim, and
// keeps that PV current. It writes leaf PVs (stamp, Retain, claimRef; setting Delete is
// root_pv's) and host PVs (removing their finalizer is root_pv's).
//
//   - A volume that is used again, or whose leaf claim was lost, gets its new leaf claim in
//     claimRef. The member's PV controller queues such a claim only at its next resync, so
//     root_pvc touches it (xylem.io/volume-uid).
//   - Retain in the member takes precedence: if an admin sets the host PV to Delete, leaf_pv sets it
//     back to Retain.
//   - A leaf PV that was re-created under its name, with another UID, may be another disk. A bound
//     claim reports VolumeReplaced. When the claim is deleted, root_pv deletes the host PV and the
//     leaf claim, and destroys neither volume.
//   - A host PV that Xylem creates again for a claim that names it has policy Retain, because the
//     policy that an admin had set on the earlier one is unknown. It has the name in the claim, plain
//     or suffixed, even if the plain name is free now.
package leafpv
