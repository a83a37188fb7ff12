package lifecycle

import (
	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/snapshot"
)

// sources lists the reasons for rejecting a source.
const sources = "SnapshotSourceInvalid, SnapshotSourceNotReady"

// classes lists the reasons why the member cannot take a snapshot.
const classes = "NamespaceNotAdmitted, SnapshotClassNotFound, SnapshotClassMismatch, SnapshotSourceNotReady"

// table maps every observation of a snapshot to a plan.
var table = []section{
	{title: "No host content represents it", when: []fact{not(hosted)}, rows: []row{
		{phase: Unrepresented, when: []fact{not(rootGone)}, owner: RootSnapshot, until: "the host's snapshot-controller creates the content, or the root is gone"},
		{phase: Orphaned, when: []fact{hasContent, not(contentDeleting), not(secured), either(hasLeaf, not(stamped))}, step: Secure, owner: LeafSnapshot},
		{phase: Orphaned, when: []fact{hasLeaf, not(leafDeleting), retained}, step: DeleteOrphaned, owner: RootSnapshot},
		{phase: Orphaned, when: []fact{hasLeaf}, owner: RootSnapshot, until: "the leaf, or its content, is gone"},
		{phase: Orphaned, when: []fact{hasContent}, owner: LeafSnapshot, until: "the member's admin deletes it, with policy Delete to destroy the snapshot"},
		{phase: Foreign, until: "it has anything to do with this host"},
	}},
	{title: "It is another driver's", when: []fact{not(own)}, rows: []row{
		{phase: Foreign, until: "it is one of csi.xylem.io"},
	}},
	{title: "No member has anything of it, and it has ended", when: []fact{not(placed), either(ending, rootGone)}, rows: []row{
		{phase: Ending, when: []fact{ending, rootEnded, held}, step: Release, owner: HostSnapshot},
		{phase: Ending, when: []fact{ending, rootEnded}, owner: HostSnapshot, until: "others remove their finalizers"},
		{phase: Ending, when: []fact{ending}, owner: HostSnapshot, reason: v1alpha1.ReasonSnapshotTerminating, report: (*snapshot.Observed).ReportEnding, until: "the root is deleted, too"},
		{phase: Refused, owner: HostSnapshot, reason: sources, report: (*snapshot.Observed).ReportInvalid, until: "the host content is deleted"},
	}},
	{title: "An admin abandons it, or its member was deregistered", when: []fact{released}, rows: []row{
		{phase: Released, when: []fact{ending, rootEnded, held}, step: Abandon, owner: HostSnapshot},
		{phase: Released, owner: HostSnapshot, reason: v1alpha1.ReasonSnapshotAbandoned, report: (*snapshot.Observed).ReportReleased, until: "it is deleted, or its member is registered again"},
	}},
	{title: "Xylem can't take it", when: []fact{not(placed), invalid}, rows: []row{
		{phase: Refused, owner: HostSnapshot, reason: sources, report: (*snapshot.Observed).ReportInvalid, until: "the source can be used, or the root is deleted"},
	}},
	{title: "No controller of its member observes it", when: []fact{not(linked)}, rows: []row{
		{phase: Away, when: []fact{away, ready, not(ending)}, owner: HostSnapshot, until: "the member is back"},
		{phase: Away, when: []fact{away}, owner: HostSnapshot, reason: v1alpha1.ReasonMemberAway, report: (*snapshot.Observed).ReportAway, until: "the member is back"},
		{phase: Taking, owner: RootSnapshot, until: "the member's controllers observe it"},
	}},
	{title: "Its member can't be asked for snapshots", when: []fact{unavailable}, rows: []row{
		{phase: Unavailable, owner: LeafSnapshot, reason: v1alpha1.ReasonSnapshotsUnsupported, report: (*snapshot.Observed).ReportUnavailable, until: "the member serves snapshots, and lets Xylem read them"},
	}},
	{title: "Its member was deregistered, and is registered again", when: []fact{left}, rows: []row{
		{phase: Released, step: Rejoin, owner: RootSnapshot},
	}},
	{title: "The member has nothing of it yet", when: []fact{not(placed)}, rows: []row{
		{phase: Ending, when: []fact{rootEnded}, owner: RootSnapshot, until: "the host's snapshot-controller deletes the host content"},
		{phase: Refused, when: []fact{unmet}, owner: LeafSnapshot, reason: classes, report: (*snapshot.Observed).ReportUnmet, until: "the member has what it lacks"},
		{phase: Placing, when: []fact{earlier}, owner: RootSnapshot, until: "the earlier leaf is gone"},
		{phase: Refused, when: []fact{taken}, owner: LeafSnapshot, reason: v1alpha1.ReasonNameTaken, report: (*snapshot.Observed).ReportTaken, until: "the other object is gone"},
		{phase: Placing, step: Place, owner: RootSnapshot},
	}},
	{title: "The root exists", when: []fact{not(rootEnded), not(ending)}, rows: []row{
		{phase: Mismatched, when: []fact{replaced}, owner: LeafSnapshot, reason: v1alpha1.ReasonSnapshotReplaced, report: (*snapshot.Observed).ReportReplaced, until: "the root is deleted"},
		{phase: Refused, when: []fact{not(hasLeaf), not(hasContent), not(leafRecorded), unmet}, owner: LeafSnapshot, reason: classes, report: (*snapshot.Observed).ReportUnmet, until: "the member has what it lacks"},
		{phase: Placing, when: []fact{not(hasLeaf), not(hasContent), not(leafRecorded), earlier}, owner: RootSnapshot, until: "the earlier leaf is gone"},
		{phase: Refused, when: []fact{not(hasLeaf), not(hasContent), not(leafRecorded), taken}, owner: LeafSnapshot, reason: v1alpha1.ReasonNameTaken, report: (*snapshot.Observed).ReportTaken, until: "the other object is gone"},
		{phase: Placing, when: []fact{not(hasLeaf), not(hasContent), not(leafRecorded)}, step: CreateLeaf, owner: RootSnapshot},
		{phase: Taking, when: []fact{hasLeaf, not(leafRecorded)}, step: RecordLeaf, owner: RootSnapshot},
		{phase: Holding, when: []fact{hasContent, not(secured)}, step: Secure, owner: LeafSnapshot},
		{phase: Holding, when: []fact{hasContent, answered, not(recorded)}, step: RecordContent, owner: LeafSnapshot},
		{phase: Lost, when: []fact{not(hasContent), either(contentRecorded, not(hasLeaf))}, owner: LeafSnapshot, reason: v1alpha1.ReasonSnapshotLost, report: (*snapshot.Observed).ReportLost, until: "the root is deleted"},
		{phase: Lost, when: []fact{not(hasLeaf)}, owner: LeafSnapshot, reason: v1alpha1.ReasonSnapshotLost, report: (*snapshot.Observed).ReportLeafLost, until: "the root is deleted"},
		{phase: Terminating, when: []fact{either(leafDeleting, contentDeleting)}, owner: LeafSnapshot, reason: v1alpha1.ReasonSnapshotTerminating, report: (*snapshot.Observed).ReportTerminating, until: "the root is deleted"},
		{phase: Ready, when: []fact{hasContent, contentSaysReady}, owner: LeafSnapshot, until: "the root is deleted"},
		{phase: Taking, owner: LeafSnapshot, until: "the member's driver has taken it"},
	}},
	{title: "It must be destroyed", when: []fact{ending, rootEnded, destroyed}, rows: []row{
		{phase: Mismatched, when: []fact{replaced}, owner: LeafSnapshot, reason: v1alpha1.ReasonSnapshotReplaced, report: (*snapshot.Observed).ReportReplaced, until: "the member has no other snapshot under the name"},
		{phase: Destroying, when: []fact{hasLeaf, not(leafRecorded)}, step: RecordLeaf, owner: RootSnapshot},
		{phase: Destroying, when: []fact{hasContent, not(stamped)}, step: Secure, owner: LeafSnapshot},
		{phase: Destroying, when: []fact{hasContent, not(recorded)}, step: RecordContent, owner: LeafSnapshot},
		{phase: Destroying, when: []fact{hasContent, retained}, step: SetDelete, owner: RootSnapshot},
		{phase: Destroying, when: []fact{hasLeaf, not(leafDeleting)}, step: DeleteLeaf, owner: RootSnapshot},
		{phase: Destroying, when: []fact{hasLeaf}, owner: RootSnapshot, until: "the member has deleted the leaf"},
		{phase: Destroying, when: []fact{hasContent, not(contentDeleting)}, step: DeleteContent, owner: RootSnapshot},
		{phase: Destroying, when: []fact{hasContent}, owner: RootSnapshot, until: "the member's driver has deleted the snapshot"},
		{phase: Destroying, when: []fact{held}, step: DropHost, owner: RootSnapshot},
		{phase: Destroying, owner: RootSnapshot, until: "others remove their finalizers"},
	}},
	{title: "It has ended, and must be kept", when: []fact{either(rootGone, both(both(ending, announced), rootEnded))}, rows: []row{
		{phase: Mismatched, when: []fact{replaced}, owner: LeafSnapshot, reason: v1alpha1.ReasonSnapshotReplaced, report: (*snapshot.Observed).ReportReplaced, until: "the member has no other snapshot under the name"},
		{phase: Keeping, when: []fact{hasLeaf, not(leafRecorded)}, step: RecordLeaf, owner: RootSnapshot},
		{phase: Keeping, when: []fact{hasContent, not(secured)}, step: Secure, owner: LeafSnapshot},
		{phase: Keeping, when: []fact{hasContent, not(recorded)}, step: RecordContent, owner: LeafSnapshot},
		{phase: Keeping, when: []fact{hasLeaf, not(leafDeleting)}, step: DeleteKept, owner: RootSnapshot},
		{phase: Keeping, when: []fact{hasLeaf}, owner: RootSnapshot, until: "the leaf is gone"},
		{phase: Keeping, when: []fact{ending, held}, step: DropKept, owner: RootSnapshot},
		{phase: Keeping, when: []fact{ending}, owner: RootSnapshot, until: "others remove their finalizers"},
		{phase: Retained, owner: RootSnapshot, until: "an admin deletes the host content"},
	}},
	{title: "Its end is not announced yet", rows: []row{
		{phase: Ending, when: []fact{not(rootEnded), not(ready)}, owner: RootSnapshot, reason: v1alpha1.ReasonSnapshotTerminating, report: (*snapshot.Observed).ReportEnding, until: "the root is deleted, too"},
		{phase: Ending, owner: RootSnapshot, until: "the host's snapshot-controller announces that the root is deleted"},
	}},
}
