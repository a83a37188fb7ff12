package lifecycle

import (
	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/snapshot"
)

// sources lists the reasons for rejecting a source.
const sources = "SnapshotSourceInvalid, SnapshotSourceNotReady"

// classes lists the reasons why the member cannot take a snapshot.
const classes = "NamespaceNotAdmitted, SnapshotClassNotFound, SnapshotClassMismatch, SnapshotSourceNotReady, SnapshotSourceInvalid"

// sections contains the rows of the table.
var sections = []section{
	{Title: "No host content represents it", When: []fact{not(hosted)}, Rows: []row{
		{Phase: Unrepresented, When: []fact{not(rootGone)}, Owner: RootSnapshot, Until: "the host's snapshot-controller creates the content, or the root is gone"},
		{Phase: Orphaned, When: []fact{hasContent, not(contentDeleting), not(secured), either(hasLeaf, not(stamped))}, Step: Secure, Owner: LeafSnapshot},
		{Phase: Orphaned, When: []fact{hasLeaf, not(leafDeleting), retained}, Step: DeleteOrphaned, Owner: RootSnapshot},
		{Phase: Orphaned, When: []fact{hasLeaf}, Owner: RootSnapshot, Until: "the leaf or its content is gone"},
		{Phase: Orphaned, When: []fact{hasContent}, Owner: LeafSnapshot, Until: "the member's admin deletes the leaf content, with policy Delete if the snapshot must be destroyed"},
		{Phase: Foreign, Until: "it concerns this host"},
	}},
	{Title: "It has another driver", When: []fact{not(own)}, Rows: []row{
		{Phase: Refused, When: []fact{invalid}, Owner: HostSnapshot, Reasons: v1alpha1.ReasonSnapshotClassMismatch, Report: (*snapshot.Observed).ReportInvalid, Until: "the root is deleted; host_snapshot only emits an event, because the content is foreign"},
		{Phase: Foreign, Until: "its driver is csi.xylem.io"},
	}},
	{Title: "It is not placed in a member, and has ended", When: []fact{not(placed), either(ending, rootGone)}, Rows: []row{
		{Phase: Ending, When: []fact{ending, rootEnded, held}, Step: Release, Owner: HostSnapshot},
		{Phase: Ending, When: []fact{ending, rootEnded}, Owner: HostSnapshot, Until: "other controllers remove their finalizers"},
		{Phase: Ending, When: []fact{ending}, Owner: HostSnapshot, Reasons: v1alpha1.ReasonSnapshotTerminating, Report: (*snapshot.Observed).ReportEnding, Until: "the root is also deleted"},
		{Phase: Refused, Owner: HostSnapshot, Reasons: sources, Report: (*snapshot.Observed).ReportInvalid, Until: "the host content is deleted"},
	}},
	{Title: "An admin abandoned it, or its member was deregistered", When: []fact{released}, Rows: []row{
		{Phase: Released, When: []fact{ending, rootEnded, held}, Step: Abandon, Owner: HostSnapshot},
		{Phase: Released, Owner: HostSnapshot, Reasons: v1alpha1.ReasonSnapshotAbandoned, Report: (*snapshot.Observed).ReportReleased, Until: "it is deleted, or its member is registered again"},
	}},
	{Title: "Xylem can't take the snapshot, or somebody changed its reference to the root", When: []fact{invalid}, Rows: []row{
		{Phase: Refused, Owner: HostSnapshot, Reasons: sources, Report: (*snapshot.Observed).ReportInvalid, Until: "the source can be used, the reference is restored, or the root is deleted"},
	}},
	{Title: "No controller for its member observes it", When: []fact{not(linked)}, Rows: []row{
		{Phase: Away, When: []fact{away, ready, not(ending)}, Owner: HostSnapshot, Until: "the member is connected again"},
		{Phase: Away, When: []fact{away}, Owner: HostSnapshot, Reasons: v1alpha1.ReasonMemberAway, Report: (*snapshot.Observed).ReportAway, Until: "the member is connected again"},
		{Phase: Taking, Owner: RootSnapshot, Until: "the member's controllers observe it"},
	}},
	{Title: "Its member does not serve snapshots to Xylem", When: []fact{unavailable}, Rows: []row{
		{Phase: Unavailable, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotsUnsupported, Report: (*snapshot.Observed).ReportUnavailable, Until: "the member serves snapshots and allows Xylem to read them"},
	}},
	{Title: "Its member was deregistered and is registered again", When: []fact{left}, Rows: []row{
		{Phase: Released, Step: Rejoin, Owner: RootSnapshot},
	}},
	{Title: "The member has no objects for it yet", When: []fact{not(placed)}, Rows: []row{
		{Phase: Ending, When: []fact{rootEnded}, Owner: RootSnapshot, Until: "the host's snapshot-controller deletes the host content"},
		{Phase: Refused, When: []fact{unmet}, Owner: LeafSnapshot, Reasons: classes, Report: (*snapshot.Observed).ReportUnmet, Until: "the reported problem is solved"},
		{Phase: Placing, When: []fact{earlier, silent}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*snapshot.Observed).ReportSilent, Until: "the earlier root's leaf is gone"},
		{Phase: Placing, When: []fact{earlier}, Owner: LeafSnapshot, Until: "the earlier root's leaf is gone"},
		{Phase: Refused, When: []fact{taken}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*snapshot.Observed).ReportTaken, Until: "the object that has the leaf's name is gone"},
		{Phase: Placing, Step: Place, Owner: RootSnapshot},
	}},
	{Title: "It must be destroyed", When: []fact{ending, rootEnded, destroyed}, Rows: []row{
		{Phase: Mismatched, When: []fact{replaced}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotReplaced, Report: (*snapshot.Observed).ReportReplaced, Until: "no other snapshot in the member has this name"},
		{Phase: Mismatched, When: []fact{unstamped}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*snapshot.Observed).ReportUnstamped, Until: "the leaf has its stamp again, or is gone"},
		{Phase: Destroying, When: []fact{hasLeaf, not(leafRecorded)}, Step: RecordLeaf, Owner: RootSnapshot},
		{Phase: Destroying, When: []fact{hasContent, either(not(stamped), both(needed, not(secured)))}, Step: Secure, Owner: LeafSnapshot},
		{Phase: Destroying, When: []fact{hasContent, not(recorded)}, Step: RecordContent, Owner: LeafSnapshot},
		{Phase: Ending, When: []fact{needed}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonStillNeeded, Report: (*snapshot.Observed).ReportNeeded, Until: "the claims have their disks, or are gone"},
		{Phase: Destroying, When: []fact{hasContent, retained}, Step: SetDelete, Owner: RootSnapshot},
		{Phase: Destroying, When: []fact{hasLeaf, not(leafDeleting)}, Step: DeleteLeaf, Owner: RootSnapshot},
		{Phase: Destroying, When: []fact{hasLeaf}, Owner: RootSnapshot, Until: "the member has deleted the leaf"},
		{Phase: Destroying, When: []fact{hasContent, not(contentDeleting)}, Step: DeleteContent, Owner: RootSnapshot},
		{Phase: Destroying, When: []fact{hasContent}, Owner: RootSnapshot, Until: "the member's driver has deleted the snapshot"},
		{Phase: Destroying, When: []fact{held}, Step: DropHost, Owner: RootSnapshot},
		{Phase: Destroying, Owner: RootSnapshot, Until: "other controllers remove their finalizers"},
	}},
	{Title: "It has ended and must be kept", When: []fact{either(rootGone, both(both(ending, announced), rootEnded))}, Rows: []row{
		{Phase: Mismatched, When: []fact{replaced}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotReplaced, Report: (*snapshot.Observed).ReportReplaced, Until: "no other snapshot in the member has this name"},
		{Phase: Keeping, When: []fact{hasLeaf, not(leafRecorded)}, Step: RecordLeaf, Owner: RootSnapshot},
		{Phase: Keeping, When: []fact{hasContent, not(secured)}, Step: Secure, Owner: LeafSnapshot},
		{Phase: Keeping, When: []fact{hasContent, not(recorded)}, Step: RecordContent, Owner: LeafSnapshot},
		{Phase: Keeping, When: []fact{hasLeaf, not(leafDeleting)}, Step: DeleteKept, Owner: RootSnapshot},
		{Phase: Keeping, When: []fact{hasLeaf}, Owner: RootSnapshot, Until: "the leaf is gone"},
		{Phase: Keeping, When: []fact{ending, held}, Step: DropKept, Owner: RootSnapshot},
		{Phase: Keeping, When: []fact{ending}, Owner: RootSnapshot, Until: "other controllers remove their finalizers"},
		{Phase: Retained, Owner: RootSnapshot, Until: "an admin deletes the host content"},
	}},
	{Title: "It exists, or its deletion is not announced yet", Rows: []row{
		{Phase: Mismatched, When: []fact{replaced}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotReplaced, Report: (*snapshot.Observed).ReportReplaced, Until: "the root is deleted"},
		{Phase: Ending, When: []fact{notTaken, rootEnded}, Owner: RootSnapshot, Until: "the host's snapshot-controller announces that the root is deleted"},
		{Phase: Ending, When: []fact{notTaken, ending}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotTerminating, Report: (*snapshot.Observed).ReportEnding, Until: "the root is also deleted"},
		{Phase: Refused, When: []fact{notTaken, unmet}, Owner: LeafSnapshot, Reasons: classes, Report: (*snapshot.Observed).ReportUnmet, Until: "the reported problem is solved"},
		{Phase: Placing, When: []fact{notTaken, earlier, silent}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*snapshot.Observed).ReportSilent, Until: "the earlier root's leaf is gone"},
		{Phase: Placing, When: []fact{notTaken, earlier}, Owner: LeafSnapshot, Until: "the earlier root's leaf is gone"},
		{Phase: Refused, When: []fact{notTaken, taken}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*snapshot.Observed).ReportTaken, Until: "the object that has the leaf's name is gone"},
		{Phase: Placing, When: []fact{notTaken}, Step: CreateLeaf, Owner: RootSnapshot},
		{Phase: Taking, When: []fact{hasLeaf, not(leafRecorded)}, Step: RecordLeaf, Owner: RootSnapshot},
		{Phase: Holding, When: []fact{hasContent, begun, not(secured)}, Step: Secure, Owner: LeafSnapshot},
		{Phase: Holding, When: []fact{hasContent, answered, not(recorded)}, Step: RecordContent, Owner: LeafSnapshot},
		{Phase: Mismatched, When: []fact{unstamped}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*snapshot.Observed).ReportUnstamped, Until: "the leaf has its stamp again, or is gone"},
		{Phase: Lost, When: []fact{not(hasContent), either(contentRecorded, not(hasLeaf))}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotLost, Report: (*snapshot.Observed).ReportLost, Until: "the root is deleted"},
		{Phase: Lost, When: []fact{not(hasLeaf)}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotLost, Report: (*snapshot.Observed).ReportLeafLost, Until: "the root is deleted"},
		{Phase: Terminating, When: []fact{either(leafDeleting, contentDeleting)}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotTerminating, Report: (*snapshot.Observed).ReportTerminating, Until: "the root is deleted"},
		{Phase: Ready, When: []fact{hasContent, contentIsReady}, Owner: LeafSnapshot, Until: "the root is deleted, and the host's snapshot-controller announces it"},
		{Phase: Taking, When: []fact{silent}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotterSilent, Report: (*snapshot.Observed).ReportSilent, Until: "that program responds"},
		{Phase: Taking, Owner: LeafSnapshot, Until: "the member's driver has taken the snapshot"},
	}},
}
