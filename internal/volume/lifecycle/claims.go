package lifecycle

import (
	"slices"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/volume"
)

// claimSections contains the sections for claims without a volume in the member, in mirror mode.
var claimSections = []section{
	{Title: "The leaf claim of an earlier root with the same name still exists", When: []fact{hasNoVolumeHere, earlierLeafClaimHasName}, Rows: []row{
		{Phase: Withdrawing, Owner: RootPVC, Until: "that leaf claim is gone"},
	}},
	{Title: "The leaf claim is being deleted", When: []fact{hasNoVolumeHere, leafClaimTerminating}, Rows: []row{
		{Phase: Withdrawing, Owner: RootPVC, Until: "the leaf claim is gone"},
	}},
	{Title: "The claim requests, by name, the volume of an earlier claim with the same name", When: []fact{hasNoVolumeHere, not(rootBoundToPromiseWithoutDisk), rootNamesVolume, not(hasLeafClaim), requestedLeafPVIsHere},
		Rows: append(adoptingRows(row{Phase: InUse, When: []fact{requestedLeafPVInUse}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: volume.ReportRequestedVolumeInUse, Until: "the leaf PV is Released"}),
			row{Phase: Adopting, Owner: RootPVC, Until: "leaf_pv creates the host PV"})},
	{Title: "The claim names a volume that this member does not have", When: []fact{hasNoVolumeHere, not(rootBoundToPromiseWithoutDisk), rootNamesVolume}, Rows: slices.Concat([]row{
		{Phase: Mismatched, When: []fact{mirrorNamesOtherClaim}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: volume.ReportHostClaimRefDiverted, Until: "the claimRef of the host PV names the claim"},
		{Phase: Unplacing, When: []fact{not(hasLeafClaim), rootBoundOutsideMember, rootPlacedHere}, Step: Unplace, Owner: RootPVC},
		{Phase: Lost, When: []fact{not(hasLeafClaim), rootSetToLost, rootPlacedHere, namedHostPVGone, not(promiseGone), not(rootNamesOwnPromise)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost, Report: volume.ReportNoCounterpart, Until: "the claim is gone, or this member has a counterpart of it"},
		{Phase: Mismatched, When: []fact{not(hasLeafClaim), rootClaimUnbound, rootPlacedHere, namedHostPVGone, not(promiseGone), not(rootNamesOwnPromise)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeNotFound, Report: volume.ReportVolumeNotFound, Until: "the claim is gone, or the volume exists"},
		{Phase: BoundElsewhere, When: []fact{not(hasLeafClaim)}, Owner: RootPVC, Until: "this member has a volume for the claim"},
		{Phase: Withdrawing, When: []fact{leafClaimNamesNoVolume}, Step: Withdraw, Owner: RootPVC},
		{Phase: Unpromised, When: []fact{either(promiseGone, rootNamesOwnPromise)}, Owner: RootPVC, Until: "the promise is observed, or the controller promise re-creates it"},
		{Phase: Terminating, When: []fact{rootNamesMirrorOfLeafClaim, namedHostPVGone, either(not(rootPlaced), rootPlacedHere), provisionedVolumeTerminating}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeTerminating, Report: volume.ReportUnmirroredTerminating, Until: "the claim is gone"},
		{Phase: Lost, When: []fact{rootNamesMirrorOfLeafClaim, rootPlacedHere, not(rootBoundOutsideMember), leafClaimLostItsVolume}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost, Report: volume.ReportProvisionedLost, Until: "the claim is gone, or the leaf claim is bound again"},
		{Phase: Provisioned, When: []fact{rootNamesMirrorOfLeafClaim, either(rootPlaced, rootBoundOutsideMember)}, Owner: RootPVC, Until: "the host binds the claim, or leaf_pv re-creates the host PV"},
	}, unconfirmedPlacementRows(rootNamesMirrorOfLeafClaim), []row{
		{Phase: Mismatched, When: []fact{not(rootBoundOutsideMember)}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: volume.ReportTwoPossibleVolumes, Until: "the volume that the claim names is observed"},
		{Phase: Surplus, Owner: RootPVC, Reasons: v1alpha1.ReasonSurplusVolume, Report: volume.ReportSecondVolume, Until: "the leaf claim or the claim is gone"},
	})},
	{Title: "The claim names no volume, and its host PV is being deleted", When: []fact{hasNoVolumeHere, not(rootNamesVolume), mirrorTerminating}, Rows: []row{
		{Phase: Terminating, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeTerminating, Report: volume.ReportMirrorTerminating, Until: "the claim is gone"},
	}},
	{Title: "The claim names no volume, is not placed, and has a leaf claim in this member", When: []fact{hasNoVolumeHere, not(rootNamesVolume), hasLeafClaim, not(rootPlaced)}, Rows: slices.Concat([]row{
		{Phase: Unplaced, When: []fact{memberSelected, not(classBelongsToXylem)}, Owner: RootPVC, Until: "the class belongs to Xylem"},
		{Phase: Ending, When: []fact{memberSelected, rootTerminating}, Owner: RootPVC, Until: "the claim is gone"},
		{Phase: Placing, When: []fact{memberSelected, hostRestoreUnconfirmed}, Step: Place, Owner: RootPVC},
		{Phase: Withdrawing, When: []fact{not(memberSelected), leafClaimNamesNoVolume}, Step: Withdraw, Owner: RootPVC},
	}, unrecordedPlacementRows())},
	{Title: "The claim names no volume, and the scheduler selected this member", When: []fact{hasNoVolumeHere, not(rootNamesVolume), memberSelected}, Rows: []row{
		{Phase: Unplaced, When: []fact{not(classBelongsToXylem)}, Owner: RootPVC, Until: "the class belongs to Xylem"},
		{Phase: Ending, When: []fact{rootTerminating}, Owner: RootPVC, Until: "the claim is gone"},
		{Phase: Unplaced, When: []fact{rootPlacedElsewhere}, Owner: RootPVC, Reasons: v1alpha1.ReasonPlacedElsewhere, Report: volume.ReportPlacedElsewhere, Until: "the claim is placed in this member, or is no longer placed"},
		{Phase: Terminating, When: []fact{hasLeafClaim, provisionedVolumeTerminating}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeTerminating, Report: volume.ReportProvisionedTerminating, Until: "the claim is gone"},
		{Phase: Withdrawing, When: []fact{leafClaimNamesNoVolume, dataSourceGone}, Step: Withdraw, Owner: RootPVC},
		{Phase: Mismatched, When: []fact{hasLeafClaim, dataSourceDiffers}, Owner: RootPVC, Reasons: v1alpha1.ReasonSourceMismatch, Report: volume.ReportDataSourceDiffers, Until: "the claim is gone"},
		divertedRow,
		lostRow,
		{Phase: Provisioning, When: []fact{leafClaimNamesNoVolume, noPodToSchedule, not(memberRefusesLeafClaim)}, Step: SelectNode, Owner: RootPVC, Reasons: failureReasons, Report: volume.ReportProvisioningFailure},
		{Phase: Provisioning, When: []fact{hasLeafClaim}, Owner: RootPVC, Reasons: failureReasons, Report: volume.ReportProvisioningFailure, Until: "the member provisions the volume, or another member is selected"},
		{Phase: Unplaced, When: []fact{not(rootPlaced), not(schedulerAgrees)}, Owner: RootPVC, Until: "the scheduler nominates this member for a Pod of the claim"},
		{Phase: Unplaced, When: []fact{not(classMirrorsAndWaits)}, Owner: RootPVC, Until: "the class changes; host_claim reports the problem"},
		{Phase: Placing, When: []fact{rootPlaced, dataSourceNotHere}, Owner: RootPVC, Reasons: awaySourceReasons, Report: volume.ReportSourceNotReadyHere, Until: "the data source is ready, or the claim is deleted"},
		{Phase: Unplaced, When: []fact{dataSourceNotHere}, Owner: RootPVC, Until: "the controller source selects the member that has the data source; if it cannot, host_claim reports why"},
		{Phase: Unplaced, When: []fact{not(dataSourceIsPlaced), memberRefusesClass}, Step: Unselect, Owner: RootPVC, Reasons: classReasons, Report: volume.ReportLeafClaimRefused},
		{Phase: Unplaced, When: []fact{memberRefusesLeafClaim}, Owner: RootPVC, Reasons: refusalReasons, Report: volume.ReportLeafClaimRefused, Until: "the cause of the refusal changes"},
		{Phase: Unplaced, When: []fact{dataSourceRefused}, Owner: RootPVC, Reasons: sourceReasons, Report: volume.ReportSourceRefused, Until: "the claim's data source changes, or the claim is deleted"},
		{Phase: Unplaced, When: []fact{not(rootPlaced), podNeedsDataElsewhere}, Owner: RootPVC, Until: "recovery selects the member that has the other claim's data source"},
		{Phase: Placing, When: []fact{not(memberHasNamespace)}, Owner: RootPVC, Until: "leaf_namespace creates the namespace"},
		{Phase: Unconfirmed, When: []fact{not(rootPlaced), mayHaveLeafClaimElsewhere}, Owner: RootPVC, Reasons: v1alpha1.ReasonPlacementUnconfirmed, Report: volume.ReportMayBePlacedElsewhere, Until: untilCounterpartsKnown},
		{Phase: Placing, When: []fact{not(rootPlaced)}, Step: Place, Owner: RootPVC},
		{Phase: Unplacing, When: []fact{mayHaveLeafClaimElsewhere}, Step: Unplace, Owner: RootPVC},
		{Phase: Placing, Step: CreateClaim, Owner: RootPVC},
	}},
	{Title: "The claim names no volume, and the scheduler did not select this member", When: []fact{hasNoVolumeHere, not(rootNamesVolume)}, Rows: []row{
		{Phase: Unplacing, When: []fact{not(hasLeafClaim), rootPlacedHere}, Step: Unplace, Owner: RootPVC},
		{Phase: Withdrawing, When: []fact{leafClaimNamesNoVolume}, Step: Withdraw, Owner: RootPVC},
		{Phase: Terminating, When: []fact{provisionedVolumeTerminating}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeTerminating, Report: volume.ReportProvisionedTerminating, Until: "the claim is gone"},
		divertedRow,
		lostRow,
		{Phase: Unplaced, Owner: RootPVC, Until: "the scheduler selects this member, or the claim is bound"},
	}},
}

// refusalReasons and failures are the reasons why a member rejects a claim or fails to provision it.
const (
	refusalReasons = "NamespaceConflict and similar reasons"
	failureReasons = "ProvisioningFailed, ProvisionerSilent and similar reasons"
	// classReasons are the reasons why the scheduler must choose another member.
	classReasons = v1alpha1.ReasonClassNotFound + ", " + v1alpha1.ReasonClassKeepsOff + ", " + v1alpha1.ReasonMemberLeaving
	// sourceReasons are the reasons why a member cannot create a claim from its data source.
	sourceReasons = "SourceNotReady, SourceMismatch"
	// awaySourceReasons are the reasons why the data source cannot be used in this member.
	awaySourceReasons = "SourceNotReady, SourceElsewhere, SourceGone"
	// untilCounterpartsKnown describes when the wait for other members ends. root_pvc polls them, because their
	// events do not enqueue the claim here.
	untilCounterpartsKnown = "the claim is placed, or live reads show that no other member has a leaf claim; root_pvc checks every 10 s"
)

// The rows for a leaf claim whose root cannot be bound to the volume that was provisioned for it.
var (
	divertedRow = row{Phase: Mismatched, When: []fact{hasLeafClaim, mirrorNamesOtherClaim}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeMismatch, Report: volume.ReportHostClaimRefDiverted, Until: "the claimRef of the host PV names the claim"}
	lostRow     = row{Phase: Lost, When: []fact{hasLeafClaim, leafClaimLostItsVolume}, Owner: RootPVC, Reasons: v1alpha1.ReasonVolumeLost, Report: volume.ReportProvisionedLost, Until: "the leaf claim or the claim is gone, or the leaf claim is bound again"}
)

// adoptingRows returns the rows for a claim that requests a volume and is not bound to it yet. The given rows
// apply only if the claim may be placed here.
func adoptingRows(here ...row) []row {
	return slices.Concat([]row{
		{Phase: Adopting, When: []fact{not(classBelongsToXylem)}, Owner: RootPVC, Until: "the class belongs to Xylem"},
		{Phase: Adopting, When: []fact{rootPlacedElsewhere}, Owner: RootPVC, Reasons: v1alpha1.ReasonPlacedElsewhere, Report: volume.ReportPlacedElsewhere, Until: "the claim is placed in this member, or is no longer placed"},
		{Phase: Adopting, When: []fact{otherMembersHaveRequestedVolume}, Owner: RootPVC, Reasons: v1alpha1.ReasonAmbiguousVolume, Report: volume.ReportRivalMembers, Until: "only one member has a volume that the claim requests"},
	}, here, []row{
		{Phase: Adopting, When: []fact{adoptionRefused}, Owner: RootPVC, Reasons: "AdoptionUnconfirmed, VolumeMismatch", Report: (*volume.Observed).ReportUnadoptable, Until: "an admin allows the adoption, or the claim changes"},
		{Phase: Placing, When: []fact{not(rootPlaced)}, Step: Place, Owner: RootPVC},
	})
}

// unrecordedPlacementRows returns the rows for a leaf claim whose root is not placed. Xylem always records the
// placement first. So the host was restored from an older state, or somebody removed the record, or a
// user of the member created the leaf claim with this host's stamp, to make Xylem place the root there
// (I8).
func unrecordedPlacementRows(when ...fact) []row {
	return slices.Insert(unconfirmedPlacementRows(when...), 1, row{Phase: Withdrawing, When: slices.Concat(when, []fact{leafClaimNamesNoVolume}), Step: Withdraw, Owner: RootPVC})
}

// unconfirmedPlacementRows returns the rows of unrecorded for a leaf claim that names a volume.
func unconfirmedPlacementRows(when ...fact) []row {
	with := func(facts ...fact) []fact { return slices.Concat(when, facts) }
	return []row{
		{Phase: Placing, When: with(placementConfirmed), Step: Place, Owner: RootPVC},
		{Phase: Unconfirmed, When: with(hostRestoreUnconfirmed), Owner: RootPVC, Reasons: v1alpha1.ReasonAdoptionUnconfirmed, Report: volume.ReportHostRestoreUnconfirmed, Until: "an admin confirms the restore of the host"},
		{Phase: Unconfirmed, When: with(), Owner: RootPVC, Reasons: v1alpha1.ReasonAdoptionUnconfirmed, Report: volume.ReportNeverPlaced, Until: "an admin allows the use of the leaf claim's volume, or the leaf claim is gone"},
	}
}
