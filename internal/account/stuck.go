package account

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Deletion is a deletion that takes too long.
type Deletion struct {
	// Kind, namespace and name of the object to delete.
	Kind string
	Key  types.NamespacedName
	// Member: the object is the member's, not the host's.
	Member bool
	// Since is when the deletion began.
	Since time.Time
	// Cause, if known.
	Cause Cause
}

// Cause is why an object is still there.
type Cause struct {
	// Kind of the cause, one of the constants.
	Kind string
	// Text for users.
	Text string
}

// Kinds of causes.
const (
	CauseUsed        = "Used"
	CauseFinalizer   = "Finalizer"
	CauseAway        = "MemberAway"
	CauseSuspended   = "Suspended"
	CauseProvisioner = "Provisioner"
	CausePending     = "Pending"
	CauseSnapshots   = "Snapshots"
	CauseUnknown     = "Unknown"
)

// String describes the object, its cluster and the cause.
func (d Deletion) String() string {
	where := "in the host"
	if d.Member {
		where = "in the member"
	}
	name := d.Key.Name
	if d.Key.Namespace != "" {
		name = d.Key.String()
	}
	return fmt.Sprintf("%s %s %s: %s", d.Kind, name, where, d.Cause.Text)
}

// Stuck are a member's stuck deletions.
type Stuck struct {
	// Known: they were looked up.
	Known bool
	// Count is their number, and Oldest the oldest, or nil.
	Count  int
	Oldest *Deletion
}

// Explainer finds out, from a member's caches, why an object is not deleted.
type Explainer interface {
	// Explain returns why a leaf object, or the leaf of a host PV, still exists. The cause has no
	// kind if it is unknown.
	Explain(ctx context.Context, kind string, key types.NamespacedName) Cause
	// Deleting returns the leaf objects of this host that are being deleted.
	Deleting(ctx context.Context) ([]Deletion, error)
}

// Stuck returns the stuck deletions of a member.
func (b *Book) Stuck(registration string) Stuck {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stuck[registration]
}

// SetStuck records the stuck deletions of a member.
func (b *Book) SetStuck(registration string, s Stuck) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reflect.DeepEqual(b.stuck[registration], s) {
		return
	}
	b.stuck[registration] = s
	b.wake(registration)
}

// Explain sets the Explainer of a member until the context ends, while the member is linked.
func (b *Book) Explain(ctx context.Context, registration string, e Explainer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.explain[registration] = e
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.explain[registration] == e {
			delete(b.explain, registration)
		}
	})
}

// Explainer returns the Explainer of a member, or nil if it is not linked.
func (b *Book) Explainer(registration string) Explainer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.explain[registration]
}
