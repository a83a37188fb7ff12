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
	// SurplusVolume means that the volume's claim exists, but is bound to a different volume or placed in
	// another member.
	SurplusVolume = v1alpha1.ReasonSurplusVolume
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

// OrphanInventory is the latest inventory of a member's orphaned volumes.
type OrphanInventory struct {
	// Known reports whether both the host and the member were read completely at least once since
	// the manager started.
	Known bool
	// Found lists the orphans in the last complete inventory, sorted by name.
	Found []Orphan
	// FailureCause explains why there is no newer inventory. It is "" if there was no error.
	FailureCause string
	// FailingSince is the time when the inventory first failed, if FailureCause is not empty.
	FailingSince time.Time
}

// OrphanTracker keeps the inventories of all members, by registration. The controller orphan makes them, and
// those that observe leaf volumes and snapshots record candidates.
type OrphanTracker struct {
	mu      sync.Mutex
	orphans map[string]OrphanInventory
	// orphanedSnapshots contains the leaf snapshots that no VolumeSnapshotContent in the host represents.
	// In these inventories, Volume is the name of a VolumeSnapshotContent in the member.
	orphanedSnapshots map[string]OrphanInventory
	candidates        map[string]*orphanCandidates
	changes           route.Trigger
	orphansChanged    route.Trigger // enqueues the names of members whose orphans changed
	changeToken       chan struct{} // holds a token after any change
}

// orphanCandidates are a member's volumes that have no root according to its cache.
type orphanCandidates struct {
	names     map[string]struct{}
	goneNames map[string]struct{} // recorded by RecordVolumeGone during the current inventory; otherwise nil
	changed   chan struct{}       // holds a token after a change
}

func (s *orphanCandidates) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// NewOrphanTracker creates an empty OrphanTracker.
func NewOrphanTracker() *OrphanTracker {
	return &OrphanTracker{
		orphans: map[string]OrphanInventory{}, orphanedSnapshots: map[string]OrphanInventory{}, candidates: map[string]*orphanCandidates{},
		changeToken: make(chan struct{}, 1),
	}
}

// FactsChanged returns a channel with a token when the inventory of any member changes, for example after its
// first inventory. It supports only one reader.
func (t *OrphanTracker) FactsChanged() <-chan struct{} { return t.changeToken }

// OrphanedVolumes returns a member's last known orphans.
func (t *OrphanTracker) OrphanedVolumes(registration string) OrphanInventory {
	return t.lastInventory(t.orphans, registration)
}

// lastInventory returns a copy of a member's inventory in one of the tracker's maps.
func (t *OrphanTracker) lastInventory(of map[string]OrphanInventory, registration string) OrphanInventory {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := of[registration]
	o.Found = slices.Clone(o.Found)
	return o
}

// MembersWithSameOrphan returns the other members whose last inventory contains an orphan with the given name for
// the same claim.
func (t *OrphanTracker) MembersWithSameOrphan(registration, volume string, root types.NamespacedName) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rivals []string
	for other, orphans := range t.orphans {
		has := slices.ContainsFunc(orphans.Found, func(o Orphan) bool { return o.Volume == volume && o.Root == root })
		if has && other != registration {
			rivals = append(rivals, other)
		}
	}
	slices.Sort(rivals)
	return rivals
}

// BeginInventory records that a member's inventory has begun.
func (t *OrphanTracker) BeginInventory(registration string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.candidatesOf(registration).goneNames = map[string]struct{}{}
}

// RecordInventory records a member's complete inventory. If one of the orphans was deleted, or has a root
// again, since the inventory began, Found triggers another inventory.
func (t *OrphanTracker) RecordInventory(registration string, found []Orphan) {
	if t.updateInventory(t.orphans, registration, setCompleteInventory(found)) {
		t.orphansChanged.Enqueue(registration)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.candidatesOf(registration)
	if slices.ContainsFunc(found, func(o Orphan) bool { _, gone := s.goneNames[o.Volume]; return gone }) {
		s.signal()
	}
	s.goneNames = nil
}

// RecordInventoryFailure records that a member's inventory failed. It keeps the first cause and time, because
// later causes differ only in their text. It also keeps the orphans from the last complete
// inventory.
func (t *OrphanTracker) RecordInventoryFailure(registration, why string, now time.Time) {
	t.updateInventory(t.orphans, registration, setInventoryFailure(why, now))
}

func setCompleteInventory(found []Orphan) func(*OrphanInventory) {
	return func(o *OrphanInventory) { *o = OrphanInventory{Known: true, Found: found} }
}

func setInventoryFailure(why string, now time.Time) func(*OrphanInventory) {
	return func(o *OrphanInventory) {
		if o.FailureCause == "" {
			o.FailureCause, o.FailingSince = why, now
		}
	}
}

// updateInventory updates a member's entry in one of the maps, and reports whether its orphans
// changed.
func (t *OrphanTracker) updateInventory(of map[string]OrphanInventory, registration string, change func(*OrphanInventory)) bool {
	t.mu.Lock()
	before := of[registration]
	after := before
	change(&after)
	of[registration] = after
	t.mu.Unlock()
	if !reflect.DeepEqual(before, after) {
		t.announce(registration)
	}
	return !slices.Equal(before.Found, after.Found)
}

// OrphanedSnapshots returns a member's last known snapshots that no content in the host represents.
func (t *OrphanTracker) OrphanedSnapshots(registration string) OrphanInventory {
	return t.lastInventory(t.orphanedSnapshots, registration)
}

// RecordSnapshotInventory records a complete inventory of a member's snapshots.
func (t *OrphanTracker) RecordSnapshotInventory(registration string, found []Orphan) {
	t.updateInventory(t.orphanedSnapshots, registration, setCompleteInventory(found))
}

// RecordSnapshotInventoryFailure records that the inventory of a member's snapshots failed. It works like
// RecordInventoryFailure.
func (t *OrphanTracker) RecordSnapshotInventoryFailure(registration, why string, now time.Time) {
	t.updateInventory(t.orphanedSnapshots, registration, setInventoryFailure(why, now))
}

// RequestInventory requests another inventory of a member, because an object may have lost its root.
func (t *OrphanTracker) RequestInventory(registration string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.candidatesOf(registration).signal()
}

// ForgetMember drops a member that is no longer registered.
func (t *OrphanTracker) ForgetMember(registration string) {
	t.mu.Lock()
	found := t.orphans[registration].Found
	delete(t.orphans, registration)
	delete(t.orphanedSnapshots, registration)
	delete(t.candidates, registration)
	deleteMemberMetrics(registration)
	t.mu.Unlock()
	if len(found) > 0 {
		t.orphansChanged.Enqueue(registration)
	}
}

// SetOrphanCandidate records whether a volume has no root according to its member's cache. A new
// candidate triggers an inventory. If the volume has a root, SetOrphanCandidate works like RecordVolumeGone.
func (t *OrphanTracker) SetOrphanCandidate(registration, volume string, is bool) {
	if !is {
		t.RecordVolumeGone(registration, volume)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.candidatesOf(registration)
	if _, was := s.names[volume]; !was {
		s.names[volume] = struct{}{}
		s.signal()
	}
}

// RecordVolumeGone records that a volume is missing from its member's cache. It triggers an inventory if the
// volume was a candidate, or was an orphan in the last inventory. Found triggers an inventory if
// the current one reports the volume.
func (t *OrphanTracker) RecordVolumeGone(registration, volume string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.candidatesOf(registration)
	_, wasCandidate := s.names[volume]
	found := slices.ContainsFunc(t.orphans[registration].Found, func(o Orphan) bool { return o.Volume == volume })
	delete(s.names, volume)
	if s.goneNames != nil {
		s.goneNames[volume] = struct{}{}
	}
	if wasCandidate || found {
		s.signal()
	}
}

// ResetCandidates resets a member's candidates for a new connection. It returns a channel that receives
// a token whenever the candidates change.
func (t *OrphanTracker) ResetCandidates(registration string) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.candidates, registration)
	return t.candidatesOf(registration).changed
}

func (t *OrphanTracker) candidatesOf(registration string) *orphanCandidates {
	s := t.candidates[registration]
	if s == nil {
		s = &orphanCandidates{names: map[string]struct{}{}, changed: make(chan struct{}, 1)}
		t.candidates[registration] = s
	}
	return s
}

// FactsChangeSource enqueues a request with a registration's name whenever its member's inventory changes.
func (t *OrphanTracker) FactsChangeSource() source.Source { return t.changes.NamesSource() }

// OrphansChangeSource enqueues the requests that a function returns for a registration's name, whenever the
// orphans in its member change.
func (t *OrphanTracker) OrphansChangeSource(requests route.RequestsByName) source.Source {
	return t.orphansChanged.RequestsSource(requests)
}

func (t *OrphanTracker) announce(registration string) {
	select {
	case t.changeToken <- struct{}{}:
	default:
	}
	t.changes.Enqueue(registration)
}
