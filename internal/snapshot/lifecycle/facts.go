package lifecycle

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	mirrorsnapshot "github.com/xylem-io/xylem/internal/mirror/snapshot"
	"github.com/xylem-io/xylem/internal/snapshot"
)

// fact is a condition of a row, with a description of it and of its negation.
type fact struct {
	text, opposite string
	is             func(*snapshot.Observed) bool
}

func not(f fact) fact {
	return fact{f.opposite, f.text, func(s *snapshot.Observed) bool { return !f.is(s) }}
}

func both(a, b fact) fact {
	return fact{a.text + " and " + b.text, "", func(s *snapshot.Observed) bool { return a.is(s) && b.is(s) }}
}

func either(a, b fact) fact {
	return fact{a.text + ", or " + b.text, "", func(s *snapshot.Observed) bool { return a.is(s) || b.is(s) }}
}

// Facts of the host.
var (
	hosted    = fact{"it has a host content", "it has no host content", func(s *snapshot.Observed) bool { return s.Host != nil }}
	own       = fact{"of driver csi.xylem.io", "of another driver", func(s *snapshot.Observed) bool { return mirrorsnapshot.Own(s.Host) }}
	placed    = fact{"placed", "not placed", func(s *snapshot.Observed) bool { return mirrorsnapshot.PlacedIn(s.Host) != "" }}
	ending    = fact{"the host content is being deleted", "the host content is not being deleted", func(s *snapshot.Observed) bool { return s.Host.DeletionTimestamp != nil }}
	announced = fact{"announced", "not announced", func(s *snapshot.Observed) bool { return mirrorsnapshot.Announced(s.Host) }}
	held      = fact{"held", "not held", func(s *snapshot.Observed) bool { return mirrorsnapshot.Held(s.Host) }}
	rootGone  = fact{"the root is gone", "the root exists", func(s *snapshot.Observed) bool { return s.Root == nil }}
	rootEnded = fact{"the root has ended", "the root exists", (*snapshot.Observed).RootEnded}
	released  = fact{"released", "not released", (*snapshot.Observed).Released}
	left      = fact{"its member was deregistered, and is back", "", func(s *snapshot.Observed) bool { return mirrorsnapshot.Gone(s.Host) }}
	invalid   = fact{"its source is refused", "its source is a volume of a member", func(s *snapshot.Observed) bool { return s.Invalid != nil }}
	ready     = fact{"ready", "not ready", (*snapshot.Observed).Ready}
	destroyed = fact{"to be destroyed", "to be kept", (*snapshot.Observed).Destroys}
)

// Facts of the member.
var (
	linked           = fact{"a controller of its member observes it", "host_snapshot observes it", func(s *snapshot.Observed) bool { return s.Linked }}
	away             = fact{"its member is away", "its member is connected", func(s *snapshot.Observed) bool { return s.Away != nil }}
	unavailable      = fact{"the member does not serve snapshots", "the member serves snapshots", func(s *snapshot.Observed) bool { return s.Unavailable != nil }}
	unmet            = fact{"the member lacks the class or the claim", "", func(s *snapshot.Observed) bool { return s.Unmet != nil }}
	taken            = fact{"its name is taken in the member", "", func(s *snapshot.Observed) bool { return s.NameTaken }}
	earlier          = fact{"an earlier root's leaf has its name", "", func(s *snapshot.Observed) bool { return s.Earlier }}
	replaced         = fact{"replaced", "not replaced", func(s *snapshot.Observed) bool { return s.OtherLeaf != nil || s.OtherContent != nil }}
	hasLeaf          = fact{"a leaf", "no leaf", func(s *snapshot.Observed) bool { return s.Leaf != nil }}
	leafDeleting     = fact{"the leaf is being deleted", "the leaf is not being deleted", func(s *snapshot.Observed) bool { return s.Leaf != nil && s.Leaf.DeletionTimestamp != nil }}
	leafRecorded     = fact{"the leaf's UID is recorded", "the leaf's UID is not recorded", func(s *snapshot.Observed) bool { return s.Record().Snapshot != "" }}
	hasContent       = fact{"a leaf content", "no leaf content", func(s *snapshot.Observed) bool { return s.Content != nil }}
	contentDeleting  = fact{"the leaf content is being deleted", "the leaf content is not being deleted", func(s *snapshot.Observed) bool { return s.Content != nil && s.Content.DeletionTimestamp != nil }}
	stamped          = fact{"the leaf content is stamped", "the leaf content is not stamped", (*snapshot.Observed).Stamped}
	secured          = fact{"the leaf content is secured", "the leaf content is not secured", func(s *snapshot.Observed) bool { return s.SecuredContent() == nil }}
	retained         = fact{"the leaf content is retained", "the leaf content has policy Delete", func(s *snapshot.Observed) bool { return mirrorsnapshot.Retained(s.Content) }}
	contentRecorded  = fact{"a leaf content's UID is recorded", "no leaf content's UID is recorded", func(s *snapshot.Observed) bool { return s.Record().Content != "" }}
	recorded         = fact{"the leaf content is recorded", "the leaf content is not recorded", (*snapshot.Observed).Recorded}
	answered         = fact{"the driver has responded", "the driver has not responded", func(s *snapshot.Observed) bool { return mirrorsnapshot.HandleOf(s.Content) != "" }}
	contentSaysReady = fact{"the leaf content is ready", "the leaf content is not ready", func(s *snapshot.Observed) bool { return saysReady(s.Content) }}
)

func saysReady(leaf *snapshotv1.VolumeSnapshotContent) bool {
	return leaf.Status != nil && leaf.Status.ReadyToUse != nil && *leaf.Status.ReadyToUse
}
