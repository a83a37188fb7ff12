package lifecycle

import (
	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/states"
)

// Steps.
const (
	Place          Step = "Place"
	Rejoin         Step = "Rejoin"
	CreateLeaf     Step = "CreateLeaf"
	RecordLeaf     Step = "RecordLeaf"
	Secure         Step = "Secure"
	RecordContent  Step = "RecordContent"
	SetDelete      Step = "SetDelete"
	DeleteLeaf     Step = "DeleteLeaf"
	DeleteContent  Step = "DeleteContent"
	DeleteKept     Step = "DeleteKept"
	DeleteOrphaned Step = "DeleteOrphaned"
	DropHost       Step = "DropHost"
	DropKept       Step = "DropKept"
	Release        Step = "Release"
	Abandon        Step = "Abandon"
)

// steps describes each step and its needs.
var steps = []states.Action{
	states.Act(Place, "records on the host content that the member may have the snapshot, and that the snapshot is being created", states.Nothing()),
	states.Act(Rejoin, "removes the annotation on the host content that reports the deregistration of its member", states.Nothing()),
	states.Act(CreateLeaf, "creates the leaf", states.Proofs("SnapshotPlacedHere"), v1alpha1.ReasonRefusedByMember),
	states.Act(RecordLeaf, "records the leaf's UID on the host content", states.Nothing()),
	states.Act(Secure, "stamps the leaf content, records its deletion policy, and sets it to Retain", states.Nothing()),
	states.Act(RecordContent, "records the leaf content's UID, driver and handle on the host content; policy Retain in the member wins", states.Nothing()),
	states.Act(SetDelete, "sets the leaf content to Delete", states.Evidence("DestroyingSnapshot", "ContentEnded", "SnapshotEnded", "SnapshotUnneeded")),
	states.Act(DeleteLeaf, "deletes the leaf and its snapshot", states.Evidence("DestroyingSnapshot", "ContentEnded", "SnapshotEnded", "LeafContent", "SnapshotUnneeded")),
	states.Act(DeleteContent, "deletes the leaf content, which remained after its leaf was deleted", states.Evidence("DestroyingSnapshot", "ContentEnded", "SnapshotEnded", "LeafSnapshotGone", "SnapshotUnneeded")),
	states.Act(DeleteKept, "deletes the leaf, whose snapshot is kept", states.Evidence("KeepingSnapshot", "KeptSnapshot")),
	states.Act(DeleteOrphaned, "deletes the leaf, whose snapshot is kept as an orphan", states.Evidence("KeepingSnapshot", "KeptSnapshot")),
	states.Act(DropHost, "removes the finalizer from the host content, because no objects are left in the member", states.Evidence("DroppableContent", "SnapshotLeafGone"), v1alpha1.ReasonSnapshotLost),
	states.Act(DropKept, "removes the finalizer from the host content of a snapshot that must be kept; first records the snapshot if the restored member has lost it", states.Evidence("DroppableContent", "SnapshotKept"), v1alpha1.ReasonSnapshotLost),
	states.Act(Release, "removes the finalizer from the host content, because no member has objects for it", states.Evidence("DroppableContent", "SnapshotUnplaced")),
	states.Act(Abandon, "records which snapshot an admin abandoned, and removes the finalizer from the host content", states.Evidence("DroppableContent", "SnapshotReleased")),
}
