package snapshot

import (
	"github.com/xylem-io/xylem/api/v1alpha1"
)

// sourceReasons lists the reasons for rejecting a source.
const sourceReasons = "SnapshotSourceInvalid, SnapshotSourceNotReady"

// classReasons lists the reasons why the member cannot take a snapshot.
const classReasons = "NamespaceNotAdmitted, SnapshotClassNotFound, SnapshotClassMismatch, SnapshotSourceNotReady, SnapshotSourceInvalid"

// sections contains the rows of the table.
var sections = []section{
	{Title: "No host content represents it", When: []fact{not(hostContentExists)}, Rows: []row{
		{Phase: Unrepresented, When: []fact{not(rootGone)}, Owner: RootSnapshot, Until: "the host's snapshot-controller creates the content, or the root is gone"},
		{Phase: Orphaned, When: []fact{leafContentExists, not(leafContentDeleting), not(leafContentSecured), either(leafExists, not(leafContentStamped))}, Step: Secure, Owner: LeafSnapshot},
		{Phase: Orphaned, When: []fact{leafExists, not(leafDeleting), leafContentRetained}, Step: DeleteOrphaned, Owner: RootSnapshot},
		{Phase: Orphaned, When: []fact{leafExists}, Owner: RootSnapshot, Until: "the leaf or its content is gone"},
		{Phase: Orphaned, When: []fact{leafContentExists}, Owner: LeafSnapshot, Until: "the member's admin deletes the leaf content, with policy Delete if the snapshot must be destroyed"},
		{Phase: Foreign, Until: "it concerns this host"},
	}},
	{Title: "It has another driver", When: []fact{not(driverIsXylem)}, Rows: []row{
		{Phase: Refused, When: []fact{sourceInvalid}, Owner: HostSnapshot, Reasons: v1alpha1.ReasonSnapshotClassMismatch, Report: (*Observed).ReportSourceInvalid, Until: "the root is deleted; host_snapshot only emits an event, because the content is foreign"},
		{Phase: Foreign, Until: "its driver is csi.xylem.io"},
	}},
	{Title: "It is not placed in a member, and has ended", When: []fact{not(placedInMember), either(hostContentDeleting, rootGone)}, Rows: []row{
		{Phase: Ending, When: []fact{hostContentDeleting, rootEnded, hostContentHasFinalizer}, Step: Release, Owner: HostSnapshot},
		{Phase: Ending, When: []fact{hostContentDeleting, rootEnded}, Owner: HostSnapshot, Until: "other controllers remove their finalizers"},
		{Phase: Ending, When: []fact{hostContentDeleting}, Owner: HostSnapshot, Reasons: v1alpha1.ReasonSnapshotTerminating, Report: (*Observed).ReportContentEnding, Until: "the root is also deleted"},
		{Phase: Refused, Owner: HostSnapshot, Reasons: sourceReasons, Report: (*Observed).ReportSourceInvalid, Until: "the host content is deleted"},
	}},
	{Title: "An admin abandoned it, or its member was deregistered", When: []fact{snapshotReleased}, Rows: []row{
		{Phase: Released, When: []fact{hostContentDeleting, rootEnded, hostContentHasFinalizer}, Step: Abandon, Owner: HostSnapshot},
		{Phase: Released, Owner: HostSnapshot, Reasons: v1alpha1.ReasonSnapshotAbandoned, Report: (*Observed).ReportReleased, Until: "it is deleted, or its member is registered again"},
	}},
	{Title: "Xylem can't take the snapshot, or somebody changed its reference to the root", When: []fact{sourceInvalid}, Rows: []row{
		{Phase: Refused, Owner: HostSnapshot, Reasons: sourceReasons, Report: (*Observed).ReportSourceInvalid, Until: "the source can be used, the reference is restored, or the root is deleted"},
	}},
	{Title: "No controller for its member observes it", When: []fact{not(memberControllerObserves)}, Rows: []row{
		{Phase: Away, When: []fact{memberAway, hostContentReady, not(hostContentDeleting)}, Owner: HostSnapshot, Until: "the member is connected again"},
		{Phase: Away, When: []fact{memberAway}, Owner: HostSnapshot, Reasons: v1alpha1.ReasonMemberAway, Report: (*Observed).ReportMemberAway, Until: "the member is connected again"},
		{Phase: Taking, Owner: RootSnapshot, Until: "the member's controllers observe it"},
	}},
	{Title: "Its member does not serve snapshots to Xylem", When: []fact{memberServesNoSnapshots}, Rows: []row{
		{Phase: Unavailable, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotsUnsupported, Report: (*Observed).ReportUnavailable, Until: "the member serves snapshots and allows Xylem to read them"},
	}},
	{Title: "Its member was deregistered and is registered again", When: []fact{memberRegisteredAgain}, Rows: []row{
		{Phase: Released, Step: Rejoin, Owner: RootSnapshot},
	}},
	{Title: "The member has no objects for it yet", When: []fact{not(placedInMember)}, Rows: []row{
		{Phase: Ending, When: []fact{rootEnded}, Owner: RootSnapshot, Until: "the host's snapshot-controller deletes the host content"},
		{Phase: Refused, When: []fact{memberLacksClassOrClaim}, Owner: LeafSnapshot, Reasons: classReasons, Report: (*Observed).ReportUnmet, Until: "the reported problem is solved"},
		{Phase: Placing, When: []fact{earlierLeafExists, memberWaitTooLong}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*Observed).ReportSilent, Until: "the earlier root's leaf is gone"},
		{Phase: Placing, When: []fact{earlierLeafExists}, Owner: LeafSnapshot, Until: "the earlier root's leaf is gone"},
		{Phase: Refused, When: []fact{leafNameTaken}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*Observed).ReportNameTaken, Until: "the object that has the leaf's name is gone"},
		{Phase: Placing, Step: Place, Owner: RootSnapshot},
	}},
	{Title: "It must be destroyed", When: []fact{hostContentDeleting, rootEnded, mustBeDestroyed}, Rows: []row{
		{Phase: Mismatched, When: []fact{snapshotReplaced}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotReplaced, Report: (*Observed).ReportSnapshotReplaced, Until: "no other snapshot in the member has this name"},
		{Phase: Mismatched, When: []fact{leafLostStamp}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*Observed).ReportLeafUnstamped, Until: "the leaf has its stamp again, or is gone"},
		{Phase: Destroying, When: []fact{leafExists, not(leafRecorded)}, Step: RecordLeaf, Owner: RootSnapshot},
		{Phase: Destroying, When: []fact{leafContentExists, either(not(leafContentStamped), both(claimsNeedSnapshot, not(leafContentSecured)))}, Step: Secure, Owner: LeafSnapshot},
		{Phase: Destroying, When: []fact{leafContentExists, not(leafContentRecorded)}, Step: RecordContent, Owner: LeafSnapshot},
		{Phase: Ending, When: []fact{claimsNeedSnapshot}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonStillNeeded, Report: (*Observed).ReportDataStillNeeded, Until: "the claims have their disks, or are gone"},
		{Phase: Destroying, When: []fact{leafContentExists, leafContentRetained}, Step: SetDelete, Owner: RootSnapshot},
		{Phase: Destroying, When: []fact{leafExists, not(leafDeleting)}, Step: DeleteLeaf, Owner: RootSnapshot},
		{Phase: Destroying, When: []fact{leafExists}, Owner: RootSnapshot, Until: "the member has deleted the leaf"},
		{Phase: Destroying, When: []fact{leafContentExists, not(leafContentDeleting)}, Step: DeleteContent, Owner: RootSnapshot},
		{Phase: Destroying, When: []fact{leafContentExists}, Owner: RootSnapshot, Until: "the member's driver has deleted the snapshot"},
		{Phase: Destroying, When: []fact{hostContentHasFinalizer}, Step: DropHost, Owner: RootSnapshot},
		{Phase: Destroying, Owner: RootSnapshot, Until: "other controllers remove their finalizers"},
	}},
	{Title: "It has ended and must be kept", When: []fact{either(rootGone, both(both(hostContentDeleting, deletionAnnounced), rootEnded))}, Rows: []row{
		{Phase: Mismatched, When: []fact{snapshotReplaced}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotReplaced, Report: (*Observed).ReportSnapshotReplaced, Until: "no other snapshot in the member has this name"},
		{Phase: Keeping, When: []fact{leafExists, not(leafRecorded)}, Step: RecordLeaf, Owner: RootSnapshot},
		{Phase: Keeping, When: []fact{leafContentExists, not(leafContentSecured)}, Step: Secure, Owner: LeafSnapshot},
		{Phase: Keeping, When: []fact{leafContentExists, not(leafContentRecorded)}, Step: RecordContent, Owner: LeafSnapshot},
		{Phase: Keeping, When: []fact{leafExists, not(leafDeleting)}, Step: DeleteKept, Owner: RootSnapshot},
		{Phase: Keeping, When: []fact{leafExists}, Owner: RootSnapshot, Until: "the leaf is gone"},
		{Phase: Keeping, When: []fact{hostContentDeleting, hostContentHasFinalizer}, Step: DropKept, Owner: RootSnapshot},
		{Phase: Keeping, When: []fact{hostContentDeleting}, Owner: RootSnapshot, Until: "other controllers remove their finalizers"},
		{Phase: Retained, Owner: RootSnapshot, Until: "an admin deletes the host content"},
	}},
	{Title: "It exists, or its deletion is not announced yet", Rows: []row{
		{Phase: Mismatched, When: []fact{snapshotReplaced}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotReplaced, Report: (*Observed).ReportSnapshotReplaced, Until: "the root is deleted"},
		{Phase: Ending, When: []fact{nothingTakenYet, rootEnded}, Owner: RootSnapshot, Until: "the host's snapshot-controller announces that the root is deleted"},
		{Phase: Ending, When: []fact{nothingTakenYet, hostContentDeleting}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotTerminating, Report: (*Observed).ReportContentEnding, Until: "the root is also deleted"},
		{Phase: Refused, When: []fact{nothingTakenYet, memberLacksClassOrClaim}, Owner: LeafSnapshot, Reasons: classReasons, Report: (*Observed).ReportUnmet, Until: "the reported problem is solved"},
		{Phase: Placing, When: []fact{nothingTakenYet, earlierLeafExists, memberWaitTooLong}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*Observed).ReportSilent, Until: "the earlier root's leaf is gone"},
		{Phase: Placing, When: []fact{nothingTakenYet, earlierLeafExists}, Owner: LeafSnapshot, Until: "the earlier root's leaf is gone"},
		{Phase: Refused, When: []fact{nothingTakenYet, leafNameTaken}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*Observed).ReportNameTaken, Until: "the object that has the leaf's name is gone"},
		{Phase: Placing, When: []fact{nothingTakenYet}, Step: CreateLeaf, Owner: RootSnapshot},
		{Phase: Taking, When: []fact{leafExists, not(leafRecorded)}, Step: RecordLeaf, Owner: RootSnapshot},
		{Phase: Holding, When: []fact{leafContentExists, snapshotterHasBegun, not(leafContentSecured)}, Step: Secure, Owner: LeafSnapshot},
		{Phase: Holding, When: []fact{leafContentExists, driverHasResponded, not(leafContentRecorded)}, Step: RecordContent, Owner: LeafSnapshot},
		{Phase: Mismatched, When: []fact{leafLostStamp}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonNameTaken, Report: (*Observed).ReportLeafUnstamped, Until: "the leaf has its stamp again, or is gone"},
		{Phase: Lost, When: []fact{not(leafContentExists), either(contentUIDRecorded, not(leafExists))}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotLost, Report: (*Observed).ReportSnapshotLost, Until: "the root is deleted"},
		{Phase: Lost, When: []fact{not(leafExists)}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotLost, Report: (*Observed).ReportLeafLost, Until: "the root is deleted"},
		{Phase: Terminating, When: []fact{either(leafDeleting, leafContentDeleting)}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotTerminating, Report: (*Observed).ReportSnapshotTerminating, Until: "the root is deleted"},
		{Phase: Ready, When: []fact{leafContentExists, contentIsReady}, Owner: LeafSnapshot, Until: "the root is deleted, and the host's snapshot-controller announces it"},
		{Phase: Taking, When: []fact{memberWaitTooLong}, Owner: LeafSnapshot, Reasons: v1alpha1.ReasonSnapshotterSilent, Report: (*Observed).ReportSilent, Until: "that program responds"},
		{Phase: Taking, Owner: LeafSnapshot, Until: "the member's driver has taken the snapshot"},
	}},
}
