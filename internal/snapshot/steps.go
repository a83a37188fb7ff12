package snapshot

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

// stepDescriptions describes each step and its needs.
var stepDescriptions = []states.Action{
	states.NewAction(Place, "records on the host content that the member may have the snapshot, and that the snapshot is being created", states.NoNeeds()),
	states.NewAction(Rejoin, "removes the annotation on the host content that reports the deregistration of its member", states.NoNeeds()),
	states.NewAction(CreateLeaf, "creates the leaf", states.ProofNeeds("ProveSnapshotPlacedHere"), v1alpha1.ReasonRefusedByMember),
	states.NewAction(RecordLeaf, "records the leaf's UID on the host content", states.NoNeeds()),
	states.NewAction(Secure, "stamps the leaf content, records its deletion policy, and sets it to Retain", states.NoNeeds()),
	states.NewAction(RecordContent, "records the leaf content's UID, driver and handle on the host content; policy Retain in the member wins", states.NoNeeds()),
	states.NewAction(SetDelete, "sets the leaf content to Delete", states.EvidenceNeeds("DestroyingSnapshot", "ProveContentEnded", "ProveSnapshotEnded", "ProveSnapshotUnneeded")),
	states.NewAction(DeleteLeaf, "deletes the leaf and its snapshot", states.EvidenceNeeds("DestroyingSnapshot", "ProveContentEnded", "ProveSnapshotEnded", "ProveLeafContent", "ProveSnapshotUnneeded")),
	states.NewAction(DeleteContent, "deletes the leaf content, which remained after its leaf was deleted", states.EvidenceNeeds("DestroyingSnapshot", "ProveContentEnded", "ProveSnapshotEnded", "ProveLeafSnapshotGone", "ProveSnapshotUnneeded")),
	states.NewAction(DeleteKept, "deletes the leaf, whose snapshot is kept", states.EvidenceNeeds("KeepingSnapshot", "ProveLeafSnapshotDataKept")),
	states.NewAction(DeleteOrphaned, "deletes the leaf, whose snapshot is kept as an orphan", states.EvidenceNeeds("KeepingSnapshot", "ProveLeafSnapshotDataKept")),
	states.NewAction(DropHost, "removes the finalizer from the host content, because no objects are left in the member", states.EvidenceNeeds("DroppableContent", "ProveSnapshotLeafGone"), v1alpha1.ReasonSnapshotLost),
	states.NewAction(DropKept, "removes the finalizer from the host content of a snapshot that must be kept; first records the snapshot if the restored member has lost it", states.EvidenceNeeds("DroppableContent", "ProveSnapshotKept"), v1alpha1.ReasonSnapshotLost),
	states.NewAction(Release, "removes the finalizer from the host content, because no member has objects for it", states.EvidenceNeeds("DroppableContent", "ProveSnapshotUnplaced")),
	states.NewAction(Abandon, "records which snapshot an admin abandoned, and removes the finalizer from the host content", states.EvidenceNeeds("DroppableContent", "DroppableIfReleased")),
}
