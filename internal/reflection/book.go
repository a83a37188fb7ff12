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

// Book has the classes of all members, by registration.
type Book struct {
	mu      sync.Mutex
	members map[string]*noted
	offers  route.Waker
	changes route.Waker
}

// grace is how long a class that is offered has to be missing in a connected member
// until it is offered no more: one that is replaced is away for a moment, and what
// the host's class has from others would go with it. It also bounds what a member can
// have written to the host by making classes and deleting them.
const grace = 5 * time.Second

// Seen is what a member had, read from a synced cache.
type Seen struct {
	ClusterID string
	// Classes by name.
	Classes []Class
	// Published are those that it offers already by the host's classes: what is known
	// of the time before the manager started.
	Published []string
	At        time.Time
}

// noted is what a member had when it was last seen.
type noted struct {
	clusterID string
	// classes of the member, and those that are offered and were there until a moment
	// ago: since when they are missing.
	classes []Class
	missing map[string]time.Time
	// offered are the names last selected.
	offered map[string]bool
	// selected is what the registration made of it, and which registration that was.
	selected   *selection
	uid        types.UID
	generation int64
}

// NewBook creates an empty book.
func NewBook() *Book { return &Book{members: map[string]*noted{}} }

// Note what classes a member has. It reports whether that is news, and after how long
// it is to be noted again even if nothing changes, 0 for never.
func (b *Book) Note(registration string, seen Seen) (news bool, again time.Duration) {
	if news, again = b.note(registration, seen); news {
		// Who is enqueued reads the book.
		b.offers.Wake(registration)
		b.changes.Wake(registration)
	}
	return news, again
}

func (b *Book) note(registration string, seen Seen) (news bool, again time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.members[registration]
	known := was != nil && was.clusterID == seen.ClusterID
	if !known {
		was = &noted{clusterID: seen.ClusterID, offered: map[string]bool{}}
		for _, name := range seen.Published {
			was.offered[name] = true
		}
	}
	is, again := was.next(seen)
	if known && reflect.DeepEqual(was.classes, is.classes) {
		was.missing = is.missing
		return false, again
	}
	b.members[registration] = is
	return true, again
}

// next is what there is to note, and for how long at most.
func (n *noted) next(seen Seen) (*noted, time.Duration) {
	is := &noted{clusterID: seen.ClusterID, classes: slices.Clone(seen.Classes), missing: map[string]time.Time{}, offered: n.offered}
	var again time.Duration
	for _, class := range n.classes {
		if !n.offered[class.Name] || slices.ContainsFunc(seen.Classes, func(c Class) bool { return c.Name == class.Name }) {
			continue
		}
		since, missed := n.missing[class.Name]
		if !missed {
			since = seen.At
		}
		left := since.Add(grace).Sub(seen.At)
		if left <= 0 {
			continue
		}
		is.classes = append(is.classes, class)
		is.missing[class.Name] = since
		if again == 0 || left < again {
			again = left
		}
	}
	slices.SortFunc(is.classes, func(a, b Class) int { return strings.Compare(a.Name, b.Name) })
	return is, again
}

// Forget a member that is no longer registered.
func (b *Book) Forget(registration string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.members, registration)
}

// selectionOf a registration; false if its member was not seen since the manager
// started. It is worked out again when member or registration have changed.
func (b *Book) selectionOf(cr *v1alpha1.ClusterRegistration) (*selection, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.members[cr.Name]
	if n == nil || n.clusterID != cr.Status.ClusterID {
		return nil, false
	}
	if n.selected == nil || n.uid != cr.UID || n.generation != cr.Generation {
		n.selected, n.uid, n.generation = selectFrom(n.classes, n.offered, cr), cr.UID, cr.Generation
		n.offered = map[string]bool{}
		for name := range n.selected.offers {
			n.offered[name] = true
		}
	}
	return n.selected, true
}

// Offers enqueues what represents a registration in a controller whenever its member
// has other classes than before.
func (b *Book) Offers(requests route.ByName) source.Source { return b.offers.SourceOf(requests) }

// Changes enqueues a controller's request of a registration's name whenever its member
// has other classes, or something else may be ruled on them.
func (b *Book) Changes() source.Source { return b.changes.Source() }

// Ruled enqueues those who show what is ruled on a registration's classes.
func (b *Book) Ruled(registration string) { b.changes.Wake(registration) }
