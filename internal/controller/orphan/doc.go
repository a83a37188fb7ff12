// Package orphan finds the leaf volumes of a member that have no root: at each connect, at
// intervals, and when the caches give a reason. It uses only live reads of both sides, and
// reports what it found to the account; what could not be read completely is reported as
// unknown. It writes nothing: somebody may still need an orphan's data, and absence is no
// evidence (I2). cluster_registration shows what it reports.
//
// The lists are paged, the member's first: whatever is created in between has its root by
// the time that the host is read. Each finding is read once more. The UID in a volume's
// claimRef, never a name or namespace, which tenants of the member can have too, tells to
// whom a volume without a stamp belongs: to a leaf claim that exists, or to one that was
// withdrawn while a provisioner of a class that retains may have been at work.
//
// Xylem notes the UIDs of the latter before the withdrawal, in the host's record of the
// member: the 500 latest, in at most 128 KiB. If names are long, the oldest are noted by
// UID alone, which is enough to find the volume. The fence in the member has the UIDs too:
// a restored host has forgotten its own note, and the member's admin can delete the other.
//
// The status lists orphans with the time since which they are known, so that each is
// announced once, over restarts as well.
package orphan
