// Package leafpv mirrors the volumes of leaf claims to the host. In one patch, it stamps the leaf
// PV and sets its policy to Retain. It then creates the host PV that binds the root claim, and
// keeps that PV up to date. It writes leaf PVs (stamp, Retain, claimRef) and host PVs. It neither
// sets policy Delete on a leaf PV nor removes the finalizer of a host PV: root_pv does.
//
//   - If a volume is reused, or its leaf claim was lost, leaf_pv sets its claimRef to the new
//     leaf claim. The member's PV controller would queue this claim only at its next resync, so
//     root_pvc touches it (xylem.io/volume-uid).
//   - Policy Retain in the member takes precedence: if an admin sets the host PV to Delete, leaf_pv
//     sets it back to Retain.
//   - A leaf PV that was re-created under the same name, with another UID, may be another disk. A
//     bound claim reports VolumeReplaced. When the claim is deleted, root_pv deletes the host PV
//     and the leaf claim, and destroys neither volume.
//   - A host PV that Xylem re-creates for a claim that names it gets policy Retain, because the
//     policy that an admin had set on the earlier PV is unknown. It gets the name in the claim,
//     plain or suffixed, even if the plain name is free now.
package leafpv
