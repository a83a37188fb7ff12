package account

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/route"
)

// Deletion is a deletion that takes too long.
type Deletion struct {
	// Kind and Key identify the object that is being deleted.
	Kind string
	Key  types.NamespacedName
	// InMember reports whether the object is in the member rather than in the host. Root is then the UID
	// of its root.
	InMember bool
	RootUID  types.UID
	// Since is when the deletion began.
	Since time.Time
	// Cause explains why the object still exists, if known.
	Cause DeletionCause
}

// DeletionCause explains why an object still exists.
type DeletionCause struct {
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
	if d.InMember {
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

// DeletionExplainer finds out from a member's caches why an object still exists.
type DeletionExplainer interface {
	// ExplainDeletion returns why a leaf object, or the leaf of a host PV, still exists. The kind is empty
	// if the cause is unknown.
	ExplainDeletion(ctx context.Context, kind string, key types.NamespacedName) DeletionCause
	// ListDeletingLeaves returns this host's leaf objects that are being deleted.
	ListDeletingLeaves(ctx context.Context) ([]Deletion, error)
}

// StuckDeletions keeps the stuck deletions of all members, by registration. The controller stuck finds them.
type StuckDeletions struct {
	mu         sync.Mutex
	stuck      map[string]Stuck
	explainers map[string]DeletionExplainer
	changes    route.Trigger
}

// NewStuckDeletions creates an empty StuckDeletions.
func NewStuckDeletions() *StuckDeletions {
	return &StuckDeletions{stuck: map[string]Stuck{}, explainers: map[string]DeletionExplainer{}}
}

// FactsChangeSource enqueues a request with a registration's name whenever the stuck deletions of its member change.
func (d *StuckDeletions) FactsChangeSource() source.Source { return d.changes.NamesSource() }

// ForgetMember drops a member that is no longer registered.
func (d *StuckDeletions) ForgetMember(registration string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.stuck, registration)
}

// StuckDeletions returns the stuck deletions of a member.
func (d *StuckDeletions) StuckDeletions(registration string) Stuck {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stuck[registration]
}

// SetStuckDeletions records the stuck deletions of a member.
func (d *StuckDeletions) SetStuckDeletions(registration string, s Stuck) {
	d.mu.Lock()
	changes := !reflect.DeepEqual(d.stuck[registration], s)
	d.stuck[registration] = s
	d.mu.Unlock()
	if changes {
		d.changes.Enqueue(registration)
	}
}

// RegisterExplainer registers a linked member's DeletionExplainer until the context ends.
func (d *StuckDeletions) RegisterExplainer(ctx context.Context, registration string, e DeletionExplainer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.explainers[registration] = e
	context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.explainers[registration] == e {
			delete(d.explainers, registration)
		}
	})
}

// ExplainerOf returns a member's DeletionExplainer, or nil if the member is not linked.
func (d *StuckDeletions) ExplainerOf(registration string) DeletionExplainer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.explainers[registration]
}
