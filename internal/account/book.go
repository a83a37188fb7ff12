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
	// RootGone: neither the claim that it was created for nor a PV of the host
	// represents it any more.
	RootGone = v1alpha1.ReasonRootGone
	// RootReplaced: as RootGone, and another claim has the claim's name.
	RootReplaced = v1alpha1.ReasonRootReplaced
	// Surplus: its claim lives, and has its volume elsewhere.
	Surplus = v1alpha1.ReasonSurplusVolume
	// WithdrawnLate: a provisioner finished it for a claim that had been withdrawn.
	WithdrawnLate = v1alpha1.ReasonWithdrawnLate
)

// Orphan is a leaf volume of Xylem's that has no root.
type Orphan struct {
	// Volume and UID of the leaf PV.
	Volume string
	UID    types.UID
	// Root is the claim that it was created for.
	Root types.NamespacedName
	// Reason is one of the constants above; Message says it in words.
	Reason, Message string
}

// Orphans is the last account of a member's volumes.
type Orphans struct {
	// Known: all of both sides was read at least once since the manager started.
	Known bool
	// Found by the last complete account, by name.
	Found []Orphan
	// Err is why there is no newer account, empty if the last one is good.
	Err string
	// Since when it is not known what there is, if Err is not empty.
	Since time.Time
}

// Book has the accounts of all members, by registration.
type Book struct {
	mu      sync.Mutex
	orphans map[string]Orphans
	// snapshots without a content in the host: Volume of an Orphan is the leaf content.
	snapshots map[string]Orphans
	stuck     map[string]Stuck
	suspects  map[string]*suspects
	explain   map[string]Explainer
	waker     route.Waker
	found     route.Waker   // of those whose orphans are others than before
	changed   chan struct{} // holds a token if anything has
}

// suspects are the volumes of a member that its cache shows without a root.
type suspects struct {
	names map[string]struct{}
	gone  map[string]struct{} // since the account that is being made was begun; else nil
	woken chan struct{}       // holds a token if they have changed
}

func (s *suspects) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// NewBook creates an empty book.
func NewBook() *Book {
	return &Book{
		orphans: map[string]Orphans{}, snapshots: map[string]Orphans{}, stuck: map[string]Stuck{},
		suspects: map[string]*suspects{}, explain: map[string]Explainer{},
		changed: make(chan struct{}, 1),
	}
}

// Changed has a token when something new is known of any member, such as that it
// was accounted for the first time. It is for one reader.
func (b *Book) Changed() <-chan struct{} { return b.changed }

// Orphans of a member, as last known.
func (b *Book) Orphans(registration string) Orphans {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.orphans[registration]
	o.Found = slices.Clone(o.Found)
	return o
}

// Rivals are the other members that have an orphan of that name for a claim of
// the same namespace and name, by the last account of each.
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

// Looking records that an account of a member is begun.
func (b *Book) Looking(registration string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.suspectsOf(registration).gone = map[string]struct{}{}
}

// Found records a complete account of a member. What it found, and what is gone
// since it was begun, is a reason for another.
func (b *Book) Found(registration string, found []Orphan) {
	b.change(registration, func(o *Orphans) { *o = Orphans{Known: true, Found: found} })
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.suspectsOf(registration)
	if slices.ContainsFunc(found, func(o Orphan) bool { _, gone := s.gone[o.Volume]; return gone }) {
		s.wake()
	}
	s.gone = nil
}

// Unknown records that a member could not be accounted for, from now on unless
// it was so before: the first cause stays, as those of later attempts differ in
// their words only. What was found last stays too.
func (b *Book) Unknown(registration, why string, now time.Time) {
	b.change(registration, func(o *Orphans) {
		if o.Err == "" {
			o.Err, o.Since = why, now
		}
	})
}

func (b *Book) change(registration string, change func(*Orphans)) {
	b.mu.Lock()
	before := b.orphans[registration]
	after := before
	change(&after)
	b.orphans[registration] = after
	b.mu.Unlock()
	if !reflect.DeepEqual(before, after) {
		b.wake(registration)
	}
	if !slices.Equal(before.Found, after.Found) {
		b.found.Wake(registration)
	}
}

// Snapshots of a member without a content in the host, as last known.
func (b *Book) Snapshots(registration string) Orphans {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.snapshots[registration]
	o.Found = slices.Clone(o.Found)
	return o
}

// FoundSnapshots records a complete account of a member's snapshots.
func (b *Book) FoundSnapshots(registration string, found []Orphan) {
	b.changeSnapshots(registration, func(o *Orphans) { *o = Orphans{Known: true, Found: found} })
}

// UnknownSnapshots records that a member's snapshots could not be accounted for, as Unknown does.
func (b *Book) UnknownSnapshots(registration, why string, now time.Time) {
	b.changeSnapshots(registration, func(o *Orphans) {
		if o.Err == "" {
			o.Err, o.Since = why, now
		}
	})
}

func (b *Book) changeSnapshots(registration string, change func(*Orphans)) {
	b.mu.Lock()
	before := b.snapshots[registration]
	after := before
	change(&after)
	b.snapshots[registration] = after
	b.mu.Unlock()
	if !reflect.DeepEqual(before, after) {
		b.wake(registration)
	}
}

// Suspicious has a member accounted for again soon: something may have no root.
func (b *Book) Suspicious(registration string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.suspectsOf(registration).wake()
}

// Forget a member that is no longer registered.
func (b *Book) Forget(registration string) {
	b.mu.Lock()
	found := b.orphans[registration].Found
	delete(b.orphans, registration)
	delete(b.snapshots, registration)
	delete(b.stuck, registration)
	delete(b.suspects, registration)
	forgetMetrics(registration)
	b.mu.Unlock()
	if len(found) > 0 {
		b.found.Wake(registration)
	}
}

// Suspect notes whether a member's cache shows a volume without a root: a reason to
// look, live, if it was not so before. One that has a root is like one that is gone.
func (b *Book) Suspect(registration, volume string, is bool) {
	if !is {
		b.Gone(registration, volume)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.suspectsOf(registration)
	if _, was := s.names[volume]; !was {
		s.names[volume] = struct{}{}
		s.wake()
	}
}

// Gone notes that a member's cache has no volume of that name: a reason to look
// if it was suspected, or is among what the last account found, or the one finds that
// is being created.
func (b *Book) Gone(registration, volume string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.suspectsOf(registration)
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

// Suspicions of a new connection to a member, none yet: the channel has a token
// whenever they have changed.
func (b *Book) Suspicions(registration string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.suspects, registration)
	return b.suspectsOf(registration).woken
}

func (b *Book) suspectsOf(registration string) *suspects {
	s := b.suspects[registration]
	if s == nil {
		s = &suspects{names: map[string]struct{}{}, woken: make(chan struct{}, 1)}
		b.suspects[registration] = s
	}
	return s
}

// Source enqueues a controller's request of a registration's name whenever what is
// known of that member changes.
func (b *Book) Source() source.Source { return b.waker.Source() }

// FoundSource enqueues what a registration's name represents whenever other orphans are
// found in that member than before.
func (b *Book) FoundSource(requests route.ByName) source.Source { return b.found.SourceOf(requests) }

func (b *Book) wake(registration string) {
	select {
	case b.changed <- struct{}{}:
	default:
	}
	b.waker.Wake(registration)
}
