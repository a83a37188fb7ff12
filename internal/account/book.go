package account

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/route"
)

// Reasons why a leaf volume is an orphan.
const (
	// RootGone: the claim for which it was created is gone, and no host PV represents it.
	RootGone = v1alpha1.ReasonRootGone
	// RootReplaced: as RootGone, but another claim has the claim's name.
	RootReplaced = v1alpha1.ReasonRootReplaced
	// Surplus: its claim exists, and has its volume elsewhere.
	Surplus = v1alpha1.ReasonSurplusVolume
	// WithdrawnLate: a provisioner finished it for a withdrawn claim.
	WithdrawnLate = v1alpha1.ReasonWithdrawnLate
)

// Orphan is one of Xylem's leaf volumes that has no root.
type Orphan struct {
	// Volume and UID of the leaf PV.
	Volume string
	UID    types.UID
	// Root is the claim for which it was created.
	Root types.NamespacedName
	// Reason is one of the constants above, and Message explains it.
	Reason, Message string
}

// Orphans is the last account of a member's volumes.
type Orphans struct {
	// Known: both sides were read completely at least once since the manager started.
	Known bool
	// Found has the orphans in the last complete account, by name.
	Found []Orphan
	// Err is why there is no newer account, or "".
	Err string
	// Since is when the orphans became unknown, if Err is not empty.
	Since time.Time
}

// Book has the accounts of all members, by registration.
type Book struct {
	mu      sync.Mutex
	orphans map[string]Orphans
	// snapshots without a content in the host: Volume of an Orphan is the leaf content.
	snapshots  map[string]Orphans
	stuck      map[string]Stuck
	candidates map[string]*candidates
	explain    map[string]Explainer
	waker      route.Waker
	found      route.Waker   // of those whose orphans are others than before
	changed    chan struct{} // holds a token if anything has
}

// candidates are the volumes of a member that its cache shows without a root.
type candidates struct {
	names map[string]struct{}
	gone  map[string]struct{} // since the current account began; otherwise nil
	woken chan struct{}       // holds a token after a change
}

func (s *candidates) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// NewBook creates an empty Book.
func NewBook() *Book {
	return &Book{
		orphans: map[string]Orphans{}, snapshots: map[string]Orphans{}, stuck: map[string]Stuck{},
		candidates: map[string]*candidates{}, explain: map[string]Explainer{},
		changed: make(chan struct{}, 1),
	}
}

// Changed returns a channel with a token when facts about any member change, for example after
// its first account. It is for one reader.
func (b *Book) Changed() <-chan struct{} { return b.changed }

// Orphans returns the orphans of a member, as last known.
func (b *Book) Orphans(registration string) Orphans {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.orphans[registration]
	o.Found = slices.Clone(o.Found)
	return o
}

// Rivals returns the other members whose last account has an orphan of that name for a claim of
// the same namespace and name.
func (b *Book) Rivals(registration, volume string, root types.NamespacedName) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rivals []string
	for other, orphans := range b.orphans {
		has := slices.ContainsFunc(orphans.Found, func(o Orphan) bool { return o.Volume == volume && o.Root == root })
		if has && other != registration {
			rivals = append(rivals, other)
		}
	}
	slices.Sort(rivals)
	return rivals
}

// Looking records that an account of a member has begun.
func (b *Book) Looking(registration string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.candidatesOf(registration).gone = map[string]struct{}{}
}

// Found records a complete account of a member. A new orphan, or a volume that was deleted
// since the account began, triggers another account.
func (b *Book) Found(registration string, found []Orphan) {
	if b.change(b.orphans, registration, complete(found)) {
		b.found.Wake(registration)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.candidatesOf(registration)
	if slices.ContainsFunc(found, func(o Orphan) bool { _, gone := s.gone[o.Volume]; return gone }) {
		s.wake()
	}
	s.gone = nil
}

// Unknown records that an account of a member failed. It keeps the first cause and time,
// because later causes differ only in their text, and the orphans that were found last.
func (b *Book) Unknown(registration, why string, now time.Time) {
	b.change(b.orphans, registration, failed(why, now))
}

func complete(found []Orphan) func(*Orphans) {
	return func(o *Orphans) { *o = Orphans{Known: true, Found: found} }
}

func failed(why string, now time.Time) func(*Orphans) {
	return func(o *Orphans) {
		if o.Err == "" {
			o.Err, o.Since = why, now
		}
	}
}

// change changes what one of the book's maps has of a member, and reports whether others were
// found.
func (b *Book) change(of map[string]Orphans, registration string, change func(*Orphans)) bool {
	b.mu.Lock()
	before := of[registration]
	after := before
	change(&after)
	of[registration] = after
	b.mu.Unlock()
	if !reflect.DeepEqual(before, after) {
		b.wake(registration)
	}
	return !slices.Equal(before.Found, after.Found)
}

// Snapshots returns a member's snapshots without a content in the host, as last known.
func (b *Book) Snapshots(registration string) Orphans {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.snapshots[registration]
	o.Found = slices.Clone(o.Found)
	return o
}

// FoundSnapshots records a complete account of a member's snapshots.
func (b *Book) FoundSnapshots(registration string, found []Orphan) {
	b.change(b.snapshots, registration, complete(found))
}

// UnknownSnapshots records that a member's snapshots could not be accounted for, as Unknown does.
func (b *Book) UnknownSnapshots(registration, why string, now time.Time) {
	b.change(b.snapshots, registration, failed(why, now))
}

// RequestAccount requests another account of a member soon, because an object may have no root.
func (b *Book) RequestAccount(registration string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.candidatesOf(registration).wake()
}

// Forget drops a member that is no longer registered.
func (b *Book) Forget(registration string) {
	b.mu.Lock()
	found := b.orphans[registration].Found
	delete(b.orphans, registration)
	delete(b.snapshots, registration)
	delete(b.stuck, registration)
	delete(b.candidates, registration)
	forgetMetrics(registration)
	b.mu.Unlock()
	if len(found) > 0 {
		b.found.Wake(registration)
	}
}

// SetCandidate records whether a member's cache shows a volume without a root. A new candidate
// triggers an account. A volume that has a root counts as gone.
func (b *Book) SetCandidate(registration, volume string, is bool) {
	if !is {
		b.Gone(registration, volume)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.candidatesOf(registration)
	if _, was := s.names[volume]; !was {
		s.names[volume] = struct{}{}
		s.wake()
	}
}

// Gone records that a member's cache has no volume of that name. It triggers an account if the
// volume was a candidate or was found by the last or the current account.
func (b *Book) Gone(registration, volume string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.candidatesOf(registration)
	_, suspected := s.names[volume]
	found := slices.ContainsFunc(b.orphans[registration].Found, func(o Orphan) bool { return o.Volume == volume })
	delete(s.names, volume)
	if s.gone != nil {
		s.gone[volume] = struct{}{}
	}
	if suspected || found {
		s.wake()
	}
}

// Suspicions starts the candidates of a new connection to a member. The channel has a token
// whenever they have changed.
func (b *Book) Suspicions(registration string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.candidates, registration)
	return b.candidatesOf(registration).woken
}

func (b *Book) candidatesOf(registration string) *candidates {
	s := b.candidates[registration]
	if s == nil {
		s = &candidates{names: map[string]struct{}{}, woken: make(chan struct{}, 1)}
		b.candidates[registration] = s
	}
	return s
}

// Source enqueues a request with a registration's name whenever the facts about its member
// change.
func (b *Book) Source() source.Source { return b.waker.Source() }

// FoundSource enqueues the requests of a registration's name whenever the orphans found in its
// member change.
func (b *Book) FoundSource(requests route.ByName) source.Source { return b.found.SourceOf(requests) }

func (b *Book) wake(registration string) {
	select {
	case b.changed <- struct{}{}:
	default:
	}
	b.waker.Wake(registration)
}
