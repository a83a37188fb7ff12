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
	// RootGone means that the claim for which the volume was created is gone, and that no host PV
	// represents the volume.
	RootGone = v1alpha1.ReasonRootGone
	// RootReplaced is like RootGone, except that another claim now has the same name.
	RootReplaced = v1alpha1.ReasonRootReplaced
	// Surplus means that the volume's claim exists, but is bound to a different volume or placed in
	// another member.
	Surplus = v1alpha1.ReasonSurplusVolume
	// WithdrawnLate means that a provisioner created the volume after its claim was withdrawn.
	WithdrawnLate = v1alpha1.ReasonWithdrawnLate
)

// Orphan is one of Xylem's leaf volumes that has no root.
type Orphan struct {
	// Volume is the name of the leaf PV, and UID its UID.
	Volume string
	UID    types.UID
	// Root is the claim for which the volume was created.
	Root types.NamespacedName
	// Reason is one of the constants above, and Message explains it.
	Reason, Message string
}

// Orphans is the latest inventory of a member's orphaned volumes.
type Orphans struct {
	// Known reports whether both the host and the member were read completely at least once since
	// the manager started.
	Known bool
	// Found lists the orphans in the last complete inventory, sorted by name.
	Found []Orphan
	// Err explains why there is no newer inventory. It is "" if there was no error.
	Err string
	// Since is the time when the inventory first failed, if Err is not empty.
	Since time.Time
}

// Book keeps the inventories of all members, by registration.
type Book struct {
	mu      sync.Mutex
	orphans map[string]Orphans
	// snapshots contains the leaf snapshots that no VolumeSnapshotContent in the host represents.
	// In these Orphans, Volume is the name of a VolumeSnapshotContent in the member.
	snapshots  map[string]Orphans
	stuck      map[string]Stuck
	candidates map[string]*candidates
	explain    map[string]Explainer
	waker      route.Waker
	found      route.Waker   // enqueues the names of members whose orphans changed
	changed    chan struct{} // holds a token after any change
}

// candidates are a member's volumes that have no root according to its cache.
type candidates struct {
	names map[string]struct{}
	gone  map[string]struct{} // recorded by Gone during the current inventory; otherwise nil
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

// Changed returns a channel with a token when facts about any member change, for example after its
// first inventory. It supports only one reader.
func (b *Book) Changed() <-chan struct{} { return b.changed }

// Orphans returns a member's last known orphans.
func (b *Book) Orphans(registration string) Orphans {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.orphans[registration]
	o.Found = slices.Clone(o.Found)
	return o
}

// Rivals returns the other members whose last inventory contains an orphan with the given name for
// the same claim.
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

// Looking records that a member's inventory has begun.
func (b *Book) Looking(registration string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.candidatesOf(registration).gone = map[string]struct{}{}
}

// Found records a member's complete inventory. If one of the orphans was deleted, or has a root
// again, since the inventory began, Found triggers another inventory.
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

// Unknown records that a member's inventory failed. It keeps the first cause and time, because
// later causes differ only in their text. It also keeps the orphans from the last complete
// inventory.
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

// change updates a member's entry in one of the book's maps, and reports whether its orphans
// changed.
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

// Snapshots returns a member's last known snapshots that no content in the host represents.
func (b *Book) Snapshots(registration string) Orphans {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.snapshots[registration]
	o.Found = slices.Clone(o.Found)
	return o
}

// FoundSnapshots records a complete inventory of a member's snapshots.
func (b *Book) FoundSnapshots(registration string, found []Orphan) {
	b.change(b.snapshots, registration, complete(found))
}

// UnknownSnapshots records that the inventory of a member's snapshots failed. It works like
// Unknown.
func (b *Book) UnknownSnapshots(registration, why string, now time.Time) {
	b.change(b.snapshots, registration, failed(why, now))
}

// RequestAccount requests another inventory of a member, because an object may have lost its root.
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

// SetCandidate records whether a volume has no root according to its member's cache. A new
// candidate triggers an inventory. If the volume has a root, SetCandidate works like Gone.
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

// Gone records that a volume is missing from its member's cache. It triggers an inventory if the
// volume was a candidate, or was an orphan in the last inventory. Found triggers an inventory if
// the current one reports the volume.
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

// Suspicions resets a member's candidates for a new connection. It returns a channel that receives
// a token whenever the candidates change.
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

// FoundSource enqueues the requests that a function returns for a registration's name, whenever the
// orphans in its member change.
func (b *Book) FoundSource(requests route.ByName) source.Source { return b.found.SourceOf(requests) }

func (b *Book) wake(registration string) {
	select {
	case b.changed <- struct{}{}:
	default:
	}
	b.waker.Wake(registration)
}
