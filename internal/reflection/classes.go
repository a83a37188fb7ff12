package reflection

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/route"
)

// MemberClasses contains the classes of all members, by registration.
type MemberClasses struct {
	mu      sync.Mutex
	members map[string]*memberState
	offers  route.Trigger
	changes route.Trigger
}

// missingClassGrace is how long an offered class must be missing from a connected member before it is no longer
// offered. A class that is being replaced is missing for a moment, and deleting the host's class
// would lose other writers' labels and annotations. grace also limits the writes to the host that a
// member can cause by creating and deleting classes.
const missingClassGrace = 5 * time.Second

// ObservedClasses contains a member's classes, read from a synced cache.
type ObservedClasses struct {
	ClusterID string
	// Classes are the member's classes, sorted by name.
	Classes []MemberClass
	// Published are the names of the classes that the member already offered before the manager
	// started, according to the host's classes.
	Published []string
	At        time.Time
}

// memberState is a member's last observed state.
type memberState struct {
	clusterID string
	// classes are the member's classes and those that are still offered during their grace period.
	// missing contains the times at which the latter disappeared.
	classes []MemberClass
	missing map[string]time.Time
	// offered are the names of the classes that were last selected.
	offered map[string]bool
	// selected is the selection for the registration with the UID uid at the given generation.
	selected   *selection
	uid        types.UID
	generation int64
}

// NewMemberClasses creates an empty MemberClasses.
func NewMemberClasses() *MemberClasses { return &MemberClasses{members: map[string]*memberState{}} }

// RecordClasses records a member's classes. It reports whether the classes have changed, and after which
// time the caller must call RecordClasses again even without a change; 0 means never.
func (b *MemberClasses) RecordClasses(registration string, seen ObservedClasses) (news bool, again time.Duration) {
	if news, again = b.updateClasses(registration, seen); news {
		// The enqueued controllers read b.
		b.offers.Enqueue(registration)
		b.changes.Enqueue(registration)
	}
	return news, again
}

func (b *MemberClasses) updateClasses(registration string, seen ObservedClasses) (news bool, again time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.members[registration]
	known := was != nil && was.clusterID == seen.ClusterID
	if !known {
		was = &memberState{clusterID: seen.ClusterID, offered: map[string]bool{}}
		for _, name := range seen.Published {
			was.offered[name] = true
		}
	}
	is, again := was.nextState(seen)
	if known && reflect.DeepEqual(was.classes, is.classes) {
		was.missing = is.missing
		return false, again
	}
	b.members[registration] = is
	return true, again
}

// nextState returns the new state, and the time after which the state must be computed again.
func (n *memberState) nextState(seen ObservedClasses) (*memberState, time.Duration) {
	is := &memberState{clusterID: seen.ClusterID, classes: slices.Clone(seen.Classes), missing: map[string]time.Time{}, offered: n.offered}
	var again time.Duration
	for _, class := range n.classes {
		if !n.offered[class.Name] || slices.ContainsFunc(seen.Classes, func(c MemberClass) bool { return c.Name == class.Name }) {
			continue
		}
		since, missed := n.missing[class.Name]
		if !missed {
			since = seen.At
		}
		left := since.Add(missingClassGrace).Sub(seen.At)
		if left <= 0 {
			continue
		}
		is.classes = append(is.classes, class)
		is.missing[class.Name] = since
		if again == 0 || left < again {
			again = left
		}
	}
	slices.SortFunc(is.classes, func(a, b MemberClass) int { return strings.Compare(a.Name, b.Name) })
	return is, again
}

// HasClass reports whether a member has a class, as far as this process knows.
func (b *MemberClasses) HasClass(registration, class string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.members[registration]
	return n != nil && slices.ContainsFunc(n.classes, func(c MemberClass) bool { return c.Name == class })
}

// ForgetMember removes a member that is no longer registered.
func (b *MemberClasses) ForgetMember(registration string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.members, registration)
}

// selectionFor returns the selection for a registration, or false if its member has not been
// observed since the manager started. It recomputes the selection when the member or the
// registration has changed.
func (b *MemberClasses) selectionFor(cr *v1alpha1.ClusterRegistration) (*selection, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.members[cr.Name]
	if n == nil || n.clusterID != cr.Status.ClusterID {
		return nil, false
	}
	if n.selected == nil || n.uid != cr.UID || n.generation != cr.Generation {
		n.selected, n.uid, n.generation = selectClasses(n.classes, n.offered, cr), cr.UID, cr.Generation
		n.offered = map[string]bool{}
		for name := range n.selected.offers {
			n.offered[name] = true
		}
	}
	return n.selected, true
}

// OffersSource enqueues the requests for a registration whenever its member's classes change.
func (b *MemberClasses) OffersSource(requests route.RequestsByName) source.Source {
	return b.offers.RequestsSource(requests)
}

// offerDelay is the delay of DelayedSourceOfOffers after a member's classes have changed.
const offerDelay = 5 * time.Second

// DelayedSourceOfOffers is OffersSource with a delay, after which the capacity of a new class exists.
func (b *MemberClasses) DelayedSourceOfOffers(requests route.RequestsByName) source.Source {
	return b.offers.SourceAfterDelay(offerDelay, requests)
}

// ChangesSource enqueues a request with a registration's name whenever its member's classes, or the
// rulings on them, change.
func (b *MemberClasses) ChangesSource() source.Source { return b.changes.NamesSource() }

// EnqueueRulingReports enqueues the controllers that report rulings on a registration's classes.
func (b *MemberClasses) EnqueueRulingReports(registration string) { b.changes.Enqueue(registration) }
