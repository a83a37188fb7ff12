package lifecycle

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/snapshot"
	"github.com/xylem-io/xylem/internal/states"
)

// fact is a condition of a row.
type fact = states.Fact[snapshot.Observed]

func when(text, opposite string, is func(*snapshot.Observed) bool) fact {
	return states.If(text, opposite, is)
}

var (
	not    = states.Not[snapshot.Observed]
	either = states.Any[snapshot.Observed]
	both   = states.All[snapshot.Observed]
)

// Facts of the host.
var (
	hosted    = when("it has a host content", "it has no host content", func(s *snapshot.Observed) bool { return s.Host != nil })
	own       = when("its driver is csi.xylem.io", "it has another driver", func(s *snapshot.Observed) bool { return mirrorsnapshot.Own(s.Host) })
	placed    = when("it is placed", "it is not placed", func(s *snapshot.Observed) bool { return mirrorsnapshot.PlacedIn(s.Host) != "" })
	ending    = when("the host content is being deleted", "the host content is not being deleted", func(s *snapshot.Observed) bool { return s.Host.DeletionTimestamp != nil })
	announced = when("its deletion is announced", "its deletion is not announced", func(s *snapshot.Observed) bool { return mirrorsnapshot.Announced(s.Host) })
	held      = when("the host content is held", "the host content is not held", func(s *snapshot.Observed) bool { return mirrorsnapshot.Held(s.Host) })
	rootGone  = when("the root is gone", "the root exists", func(s *snapshot.Observed) bool { return s.Root == nil })
	rootEnded = when("the root has ended", "the root exists", (*snapshot.Observed).RootEnded)
	released  = when("it is released", "it is not released", (*snapshot.Observed).Released)
	left      = when("its member was deregistered and is registered again", "", func(s *snapshot.Observed) bool { return mirrorsnapshot.Gone(s.Host) })
	invalid   = when("its source or its reference to the root is rejected", "its source is a member's volume", func(s *snapshot.Observed) bool { return s.Invalid != nil })
	ready     = when("it is ready", "it is not ready", (*snapshot.Observed).Ready)
	needed    = when("claims will be restored from it", "", func(s *snapshot.Observed) bool { return len(s.Needs) > 0 })
	destroyed = when("it must be destroyed", "it must be kept", (*snapshot.Observed).Destroys)
)

// Facts of the member.
var (
	linked       = when("a controller for its member observes it", "host_snapshot observes it", func(s *snapshot.Observed) bool { return s.Linked })
	away         = when("its member is away", "its member is connected", func(s *snapshot.Observed) bool { return s.Away != nil })
	unavailable  = when("the member does not serve snapshots", "the member serves snapshots", func(s *snapshot.Observed) bool { return s.Unavailable != nil })
	unmet        = when("the member lacks the class or the claim", "", func(s *snapshot.Observed) bool { return s.Unmet != nil })
	taken        = when("its name is taken in the member", "", func(s *snapshot.Observed) bool { return s.NameTaken })
	earlier      = when("an earlier root's leaf has its name", "", func(s *snapshot.Observed) bool { return s.Earlier })
	unstamped    = when("its leaf has lost its stamp", "", func(s *snapshot.Observed) bool { return s.Unstamped })
	replaced     = when("it is replaced", "it is not replaced", func(s *snapshot.Observed) bool { return s.OtherLeaf != nil || s.OtherContent != nil })
	hasLeaf      = when("it has a leaf", "it has no leaf", func(s *snapshot.Observed) bool { return s.Leaf != nil })
	leafDeleting = when("the leaf is being deleted", "the leaf is not being deleted", func(s *snapshot.Observed) bool { return s.Leaf != nil && s.Leaf.DeletionTimestamp != nil })
	notTaken     = when("it has no leaf and no leaf content, and none is recorded", "", func(s *snapshot.Observed) bool {
		record := s.Record()
		return s.Leaf == nil && s.Content == nil && record.Snapshot == "" && record.Content == ""
	})
	leafRecorded    = when("the leaf's UID is recorded", "the leaf's UID is not recorded", func(s *snapshot.Observed) bool { return s.Record().Snapshot != "" })
	hasContent      = when("it has a leaf content", "it has no leaf content", func(s *snapshot.Observed) bool { return s.Content != nil })
	contentDeleting = when("the leaf content is being deleted", "the leaf content is not being deleted", func(s *snapshot.Observed) bool { return s.Content != nil && s.Content.DeletionTimestamp != nil })
	stamped         = when("the leaf content is stamped", "the leaf content is not stamped", (*snapshot.Observed).Stamped)
	secured         = when("the leaf content is secured", "the leaf content is not secured", func(s *snapshot.Observed) bool { return s.SecuredContent() == nil })
	retained        = when("the leaf content is retained", "the leaf content has policy Delete", func(s *snapshot.Observed) bool { return mirrorsnapshot.Retained(s.Content) })
	contentRecorded = when("a leaf content's UID is recorded", "no leaf content's UID is recorded", func(s *snapshot.Observed) bool { return s.Record().Content != "" })
	recorded        = when("the leaf content is recorded", "the leaf content is not recorded", (*snapshot.Observed).Recorded)
	begun           = when("the csi-snapshotter has begun", "the csi-snapshotter has not begun", func(s *snapshot.Observed) bool { return mirrorsnapshot.Begun(s.Content) })
	answered        = when("the driver has responded", "the driver has not responded", func(s *snapshot.Observed) bool { return mirrorsnapshot.HandleOf(s.Content) != "" })
	silent          = when("what it waits for in the member takes too long", "", func(s *snapshot.Observed) bool { return s.Silent != nil })
	contentIsReady  = when("the leaf content is ready", "the leaf content is not ready", func(s *snapshot.Observed) bool { return isReady(s.Content) })
)

func isReady(leaf *snapshotv1.VolumeSnapshotContent) bool {
	return leaf.Status != nil && leaf.Status.ReadyToUse != nil && *leaf.Status.ReadyToUse
}
