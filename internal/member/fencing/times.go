package fencing

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

// RestoreTimes are the times at which either cluster was last restored from an older state. Both use
// the member's clock, so that they can be compared with creationTimestamps in the member. They are
// the times when the fence detected the restore, which is later than the restore itself. Zero means
// never.
type RestoreTimes struct {
	// Host is when the host was restored. The root of a leaf that was created earlier may be lost.
	Host time.Time
	// Member is when the member was restored. A leaf that was not created later may come from the
	// backup, and lack the changes that Xylem made since the backup.
	Member time.Time
	// HostUnconfirmed reports whether the host was restored and no admin has confirmed the restore.
	HostUnconfirmed bool
	// HostAnywhere is when the host was restored according to the fence of any member, or zero. A
	// member's own fence does not detect a restore if its epoch has not changed since the backup:
	// the member was away, or was registered later.
	HostAnywhere time.Time
	// HostUnknownUntil is when this process became the leader, while other members may still detect
	// that the host was restored before. Otherwise, it is zero.
	HostUnknownUntil time.Time
}

// LastHostRestore returns when the host was last restored, according to any member. It prevents a
// destruction or a placement, and never allows one: another member may have forged it.
func (t RestoreTimes) LastHostRestore() time.Time { return LaterTime(t.Host, t.HostAnywhere) }

// LastRestore returns when either cluster was last restored, according to the member's own fence.
func (t RestoreTimes) LastRestore() time.Time { return LaterTime(t.Host, t.Member) }

// LaterTime returns the later of two times.
func LaterTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// MayBeFromBackup reports whether a leaf may come from a backup of the member: the member was
// restored, and the leaf was not created later.
func (t RestoreTimes) MayBeFromBackup(leaf metav1.Object) bool {
	return !t.Member.IsZero() && !leaf.GetCreationTimestamp().After(t.Member)
}

// MayLackLeaf reports whether the member may have lost what an object in the host represents: the
// member was restored, and the object was created before the restore, or at most mirror.MaxClockSkew after it.
func (t RestoreTimes) MayLackLeaf(host metav1.Object) bool {
	return !t.Member.IsZero() && !host.GetCreationTimestamp().After(t.Member.Add(mirror.MaxClockSkew))
}

// MayLackRoot reports whether the host may have lost the root of an object in the member: the host
// was restored, and the object was not created later.
func (t RestoreTimes) MayLackRoot(leaf metav1.Object) bool {
	host := t.LastHostRestore()
	return !host.IsZero() && !leaf.GetCreationTimestamp().After(host)
}

// MayPrecedeHostRestore reports whether another member may still detect that the host was restored after an object
// was created. Nothing that such a restore prevents may happen until this is known.
func (t RestoreTimes) MayPrecedeHostRestore(obj metav1.Object) bool {
	return obj.GetCreationTimestamp().Time.Before(t.HostUnknownUntil)
}
