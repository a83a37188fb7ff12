// Package sharing creates and removes the copies of a shared volume: claims and PVs in members other
// than the volume's own, with the same CSI driver and handle. Next decides; it is pure.
//
// The member that provisioned a shared volume owns it. Another member that shares the backend gets a
// copy when a Pod there needs the volume, in this order:
//
//  1. Record: the host PV gets a finalizer with the member's cluster ID, while it is Bound.
//  2. CreateClaim: the claim, which names the PV.
//  3. CreateVolume: the PV, whose claimRef has the claim's UID, with policy Retain.
//
// root_pod takes these steps. The copy remains until the host's claim is deleted. Then shared_pv
// deletes the claim, which the member keeps while a Pod uses it, then the PV, and finally removes the
// finalizer. Until no such finalizer is left, root_pv does not release the volume. So no member has a
// copy of a volume that may have been destroyed (I2), and a member that is away delays the release.
//
// If the host was restored, it may lack a finalizer. shared_pv first records copies that the host PV
// lacks, even if its claim is gone, and only then deletes them. An admin who confirms the restore
// while the member is away accepts that the volume may be destroyed. shared_pv deletes copies whose
// host PV is gone. A copy never has data of its own. model_test.go searches all states of a copy.
package sharing
