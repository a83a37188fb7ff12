package snapshot

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/states"
)

// fact is a condition of a row.
type fact = states.Fact[Observed]

func newFact(text, opposite string, is func(*Observed) bool) fact {
	return states.NewFact(text, opposite, is)
}

var (
	not    = states.NegateFact[Observed]
	either = states.AnyFact[Observed]
	both   = states.AllFacts[Observed]
)

// Facts of the host.
var (
	hostContentExists       = newFact("it has a host content", "it has no host content", func(s *Observed) bool { return s.Host != nil })
	driverIsXylem           = newFact("its driver is csi.xylem.io", "it has another driver", func(s *Observed) bool { return mirrorsnapshot.IsXylemContent(s.Host) })
	placedInMember          = newFact("it is placed", "it is not placed", func(s *Observed) bool { return mirrorsnapshot.ContentPlacedIn(s.Host) != "" })
	hostContentDeleting     = newFact("the host content is being deleted", "the host content is not being deleted", func(s *Observed) bool { return s.Host.DeletionTimestamp != nil })
	deletionAnnounced       = newFact("its deletion is announced", "its deletion is not announced", func(s *Observed) bool { return mirrorsnapshot.IsSnapshotBeingDeleted(s.Host) })
	hostContentHasFinalizer = newFact("the host content is held", "the host content is not held", func(s *Observed) bool { return mirrorsnapshot.HasDriverFinalizer(s.Host) })
	rootGone                = newFact("the root is gone", "the root exists", func(s *Observed) bool { return s.Root == nil })
	rootEnded               = newFact("the root has ended", "the root exists", (*Observed).HasRootEnded)
	snapshotReleased        = newFact("it is released", "it is not released", (*Observed).IsSnapshotReleased)
	memberRegisteredAgain   = newFact("its member was deregistered and is registered again", "", func(s *Observed) bool { return mirrorsnapshot.IsClusterGone(s.Host) })
	sourceInvalid           = newFact("its source or its reference to the root is rejected", "its source is a member's volume", func(s *Observed) bool { return s.Invalid != nil })
	hostContentReady        = newFact("it is ready", "it is not ready", (*Observed).IsHostContentReady)
	claimsNeedSnapshot      = newFact("claims will be restored from it", "", func(s *Observed) bool { return len(s.ClaimsToRestore) > 0 })
	mustBeDestroyed         = newFact("it must be destroyed", "it must be kept", (*Observed).MustDestroySnapshot)
)

// Facts of the member.
var (
	memberControllerObserves = newFact("a controller for its member observes it", "host_snapshot observes it", func(s *Observed) bool { return s.Linked })
	memberAway               = newFact("its member is away", "its member is connected", func(s *Observed) bool { return s.Away != nil })
	memberServesNoSnapshots  = newFact("the member does not serve snapshots", "the member serves snapshots", func(s *Observed) bool { return s.Unavailable != nil })
	memberLacksClassOrClaim  = newFact("the member lacks the class or the claim", "", func(s *Observed) bool { return s.Unmet != nil })
	leafNameTaken            = newFact("its name is taken in the member", "", func(s *Observed) bool { return s.NameTaken })
	earlierLeafExists        = newFact("an earlier root's leaf has its name", "", func(s *Observed) bool { return s.EarlierLeafExists })
	leafLostStamp            = newFact("its leaf has lost its stamp", "", func(s *Observed) bool { return s.LeafLostStamp })
	snapshotReplaced         = newFact("it is replaced", "it is not replaced", func(s *Observed) bool { return s.OtherLeaf != nil || s.OtherContent != nil })
	leafExists               = newFact("it has a leaf", "it has no leaf", func(s *Observed) bool { return s.Leaf != nil })
	leafDeleting             = newFact("the leaf is being deleted", "the leaf is not being deleted", func(s *Observed) bool { return s.Leaf != nil && s.Leaf.DeletionTimestamp != nil })
	nothingTakenYet          = newFact("it has no leaf and no leaf content, and none is recorded", "", func(s *Observed) bool {
		record := s.LeafRecord()
		return s.Leaf == nil && s.Content == nil && record.Snapshot == "" && record.Content == ""
	})
	leafRecorded        = newFact("the leaf's UID is recorded", "the leaf's UID is not recorded", func(s *Observed) bool { return s.LeafRecord().Snapshot != "" })
	leafContentExists   = newFact("it has a leaf content", "it has no leaf content", func(s *Observed) bool { return s.Content != nil })
	leafContentDeleting = newFact("the leaf content is being deleted", "the leaf content is not being deleted", func(s *Observed) bool { return s.Content != nil && s.Content.DeletionTimestamp != nil })
	leafContentStamped  = newFact("the leaf content is stamped", "the leaf content is not stamped", (*Observed).IsContentStamped)
	leafContentSecured  = newFact("the leaf content is secured", "the leaf content is not secured", func(s *Observed) bool { return s.SecuredContent() == nil })
	leafContentRetained = newFact("the leaf content is retained", "the leaf content has policy Delete", func(s *Observed) bool { return mirrorsnapshot.IsContentRetained(s.Content) })
	contentUIDRecorded  = newFact("a leaf content's UID is recorded", "no leaf content's UID is recorded", func(s *Observed) bool { return s.LeafRecord().Content != "" })
	leafContentRecorded = newFact("the leaf content is recorded", "the leaf content is not recorded", (*Observed).IsContentRecorded)
	snapshotterHasBegun = newFact("the csi-snapshotter has begun", "the csi-snapshotter has not begun", func(s *Observed) bool { return mirrorsnapshot.HasSnapshotBegun(s.Content) })
	driverHasResponded  = newFact("the driver has responded", "the driver has not responded", func(s *Observed) bool { return mirrorsnapshot.SnapshotHandleOf(s.Content) != "" })
	memberWaitTooLong   = newFact("what it waits for in the member takes too long", "", func(s *Observed) bool { return s.Silent != nil })
	contentIsReady      = newFact("the leaf content is ready", "the leaf content is not ready", func(s *Observed) bool { return isReady(s.Content) })
)

func isReady(leaf *snapshotv1.VolumeSnapshotContent) bool {
	return leaf.Status != nil && leaf.Status.ReadyToUse != nil && *leaf.Status.ReadyToUse
}
