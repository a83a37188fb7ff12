package account

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Deletion is one that takes longer than it should.
type Deletion struct {
	// Kind, namespace and name of the object that is to go.
	Kind string
	Key  types.NamespacedName
	// Member: it is the member's object, not the host's.
	Member bool
	// Since when it is to go.
	Since time.Time
	// Cause, as far as it can be told.
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

// String is what, where and why.
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
	// Known: they were looked for.
	Known bool
	// Count of them, and the oldest; nil if there is none.
	Count  int
	Oldest *Deletion
}

// Explainer finds out from a member's caches why an object does not go.
type Explainer interface {
	// Explain reports why a leaf object, or the leaf of a host PV, is still there;
	// without a kind if nothing is known.
	Explain(ctx context.Context, kind string, key types.NamespacedName) Cause
	// Deleting are the leaf objects of this host that are to go.
	Deleting(ctx context.Context) ([]Deletion, error)
}

// Stuck deletions of a member.
func (b *Book) Stuck(registration string) Stuck {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stuck[registration]
}

// SetStuck records them.
func (b *Book) SetStuck(registration string, s Stuck) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reflect.DeepEqual(b.stuck[registration], s) {
		return
	}
	b.stuck[registration] = s
	b.wake(registration)
}

// Explain sets who explains a member's deletions while it is linked; it ends
// with the context.
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

// Explainer of a member; nil if it is not linked.
func (b *Book) Explainer(registration string) Explainer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.explain[registration]
}
