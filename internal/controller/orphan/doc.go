// Package orphan finds a member's leaf volumes that have no root: it takes an inventory when the
// member connects, at intervals, and when the caches show a candidate. It uses only live reads of
// both clusters, and reports the orphans to package account. After an incomplete read, it reports
// that they are unknown. It deletes nothing: a user may still need an orphan's data, and absence is
// not evidence (I2). cluster_registration publishes the orphans in the registration's status.
//
// Few inventories run at the same time, because each decodes all volumes of a member (Slots).
//
// The lists are paged. The member is read first, so the host already has the root of a volume that
// is created in between. Xylem reads each orphan again before it reports it. The UID in a volume's
// claimRef identifies the owner of a volume without a stamp. Names and namespaces do not, because
// the member's tenants can use them too. The owner is an existing leaf claim, or one that was
// withdrawn while a provisioner may have been creating a volume with policy Retain.
//
// Xylem records the UIDs of withdrawn leaf claims before the withdrawal, in the host's record of
// the member: the 500 latest, in at most 128 KiB. If names are long, the oldest entries contain
// only the UID, which is enough to find the volume. The fence in the member also contains the UIDs,
// because a restored host may have lost its record, and the member's admin can delete the fence.
//
// The status lists each orphan with the time at which it was found, so that Xylem announces it only
// once, even after a restart.
package orphan
