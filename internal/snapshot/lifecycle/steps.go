package lifecycle

// Step is an action of a controller on a snapshot. Each takes one or two writes.
type Step string

// Steps.
const (
	None           Step = ""
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

// Needs lists what live reads must prove before a step: the evidence that package guarded
// requires, and its proofs (or those that the step reads itself).
type Needs struct{ Evidence, Proofs []string }

// steps describes each step.
var steps = []struct {
	step  Step
	does  string
	needs Needs
}{
	{Place, "records on the host content that the member may have the snapshot, and that it is being created", Needs{}},
	{Rejoin, "removes from the host content that its member was deregistered", Needs{}},
	{CreateLeaf, "creates the leaf", Needs{Proofs: []string{"SnapshotPlacedHere"}}},
	{RecordLeaf, "records the leaf's UID on the host content", Needs{}},
	{Secure, "stamps the leaf content, records its deletion policy, and sets it to Retain", Needs{}},
	{RecordContent, "records the leaf content's UID, driver and handle on the host content; policy Retain in the member wins", Needs{}},
	{SetDelete, "sets the leaf content to Delete", Needs{[]string{"DestroyingSnapshot"}, []string{"ContentEnded", "SnapshotEnded"}}},
	{DeleteLeaf, "deletes the leaf, whose snapshot goes with it", Needs{[]string{"DestroyingSnapshot"}, []string{"ContentEnded", "SnapshotEnded", "LeafContent"}}},
	{DeleteContent, "deletes the leaf content, which its leaf has left behind", Needs{[]string{"DestroyingSnapshot"}, []string{"ContentEnded", "SnapshotEnded"}}},
	{DeleteKept, "deletes the leaf, whose snapshot is kept", Needs{[]string{"KeepingSnapshot"}, []string{"ContentUnchanged", "SnapshotEnded", "LeafContent"}}},
	{DeleteOrphaned, "deletes the leaf, whose snapshot is kept as an orphan", Needs{[]string{"KeepingSnapshot"}, []string{"SnapshotEnded", "LeafContent", "NotRepresented", "MemberCurrent"}}},
	{DropHost, "removes the finalizer from the host content: nothing is left in the member", Needs{Proofs: []string{"SnapshotLeafGone"}}},
	{DropKept, "removes the finalizer from the host content: the snapshot is kept in the member", Needs{Proofs: []string{"ContentUnchanged", "SnapshotEnded"}}},
	{Release, "removes the finalizer from a host content that no member has anything of", Needs{Proofs: []string{"ContentUnchanged"}}},
	{Abandon, "records what an admin abandons, and removes the finalizer from the host content", Needs{}},
}

// NeedsOf returns the needs of a step.
func NeedsOf(step Step) Needs {
	for _, s := range steps {
		if s.step == step {
			return s.needs
		}
	}
	return Needs{}
}
