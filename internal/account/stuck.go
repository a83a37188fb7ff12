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
	// Kind and Key identify the object that is being deleted.
	Kind string
	Key  types.NamespacedName
	// Member reports whether the object is in the member rather than in the host. Root is then the UID
	// of its root.
	Member bool
	Root   types.UID
	// Since is when the deletion began.
	Since time.Time
	// Cause explains why the object still exists, if known.
	Cause Cause
}

// Cause explains why an object still exists.
type Cause struct {
	// Kind is one of the constants below.
	Kind string
	// Text is the explanation for users.
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

// Stuck summarizes a member's stuck deletions.
type Stuck struct {
	// Known reports whether the deletions were looked up.
	Known bool
	// Count is the number of stuck deletions. Oldest is the oldest one, or nil.
	Count  int
	Oldest *Deletion
}

// Explainer finds out from a member's caches why an object still exists.
type Explainer interface {
	// Explain returns why a leaf object, or the leaf of a host PV, still exists. The kind is empty
	// if the cause is unknown.
	Explain(ctx context.Context, kind string, key types.NamespacedName) Cause
	// Deleting returns this host's leaf objects that are being deleted.
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

// Explain registers a linked member's Explainer until the context ends.
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

// Explainer returns a member's Explainer, or nil if the member is not linked.
func (b *Book) Explainer(registration string) Explainer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.explain[registration]
}
