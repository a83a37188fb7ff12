package lifecycle

import (
	"slices"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/volume"
)

// claims are the sections of mirror mode for claims without a volume in the member.
var claims = []section{
	{title: "The leaf claim is being deleted", when: []fact{alone, claimDeleting}, rows: []row{
		{phase: Withdrawing, owner: RootPVC, until: "the leaf claim is gone"},
	}},
	{title: "The claim asks by name for a volume that an earlier claim of its name had", when: []fact{alone, not(diskless), named, not(hasClaim), asks},
		rows: append(adopting(), row{phase: Adopting, owner: RootPVC, until: "leaf_pv creates the host PV"})},
	{title: "The claim names a volume that this member does not have", when: []fact{alone, not(diskless), named}, rows: []row{
		{phase: Unplacing, when: []fact{not(hasClaim), boundAway, placedHere}, step: Unplace, owner: RootPVC},
		{phase: BoundElsewhere, when: []fact{not(hasClaim)}, owner: RootPVC, until: "this member has a volume for it"},
		{phase: Withdrawing, when: []fact{claimUnbound}, step: Withdraw, owner: RootPVC},
		{phase: Unpromised, when: []fact{either(promiseLost, ownPromise)}, owner: RootPVC, until: "the promise is observed, or promise creates it again"},
		{phase: Provisioned, when: []fact{namesMirror}, owner: RootPVC, until: "the host binds the claim, or leaf_pv creates the host PV again"},
		{phase: Mismatched, when: []fact{not(boundAway)}, owner: RootPVC, reason: v1alpha1.ReasonVolumeMismatch, report: (*volume.Observed).ReportUnknown, until: "the volume that the claim names is observed"},
		{phase: Surplus, owner: RootPVC, reason: v1alpha1.ReasonSurplusVolume, report: (*volume.Observed).ReportSecond, until: "the leaf claim or the claim is gone"},
	}},
	{title: "The claim names no volume, and its host PV is being deleted", when: []fact{alone, not(named), mirrorDeleting}, rows: []row{
		{phase: Terminating, owner: RootPVC, reason: v1alpha1.ReasonVolumeTerminating, report: (*volume.Observed).ReportMirrorTerminating, until: "the claim is gone"},
	}},
	{title: "The claim names no volume, is placed nowhere, and has a leaf claim here", when: []fact{alone, not(named), hasClaim, not(placed)}, rows: slices.Concat([]row{
		{phase: Unplaced, when: []fact{selected, not(ownClass)}, owner: RootPVC, until: "the class is one of Xylem's"},
		{phase: Ending, when: []fact{selected, rootDeleting}, owner: RootPVC, until: "the claim is gone"},
		{phase: Placing, when: []fact{selected, hostUnconfirmed}, step: Place, owner: RootPVC},
		{phase: Withdrawing, when: []fact{not(selected), claimUnbound}, step: Withdraw, owner: RootPVC},
	}, unrecorded())},
	{title: "The claim names no volume, and the scheduler selected this member", when: []fact{alone, not(named), selected}, rows: []row{
		{phase: Unplaced, when: []fact{not(ownClass)}, owner: RootPVC, until: "the class is one of Xylem's"},
		{phase: Ending, when: []fact{rootDeleting}, owner: RootPVC, until: "the claim is gone"},
		{phase: Unplaced, when: []fact{placedAway}, owner: RootPVC, reason: v1alpha1.ReasonPlacedElsewhere, report: (*volume.Observed).ReportElsewhere, until: "the claim is placed here, or nowhere"},
		{phase: Terminating, when: []fact{hasClaim, provisionedDeleting}, owner: RootPVC, reason: v1alpha1.ReasonVolumeTerminating, report: (*volume.Observed).ReportProvisionedTerminating, until: "the claim is gone"},
		{phase: Withdrawing, when: []fact{claimUnbound, sourceLost}, step: Withdraw, owner: RootPVC},
		{phase: Mismatched, when: []fact{hasClaim, unlike}, owner: RootPVC, reason: v1alpha1.ReasonSourceMismatch, report: (*volume.Observed).ReportUnlike, until: "the claim is gone"},
		{phase: Provisioning, when: []fact{hasClaim}, owner: RootPVC, reason: failures, report: (*volume.Observed).ReportFailure, until: "the member provisions the volume, or another member is selected"},
		{phase: Unplaced, when: []fact{not(placed), not(agreed)}, owner: RootPVC, until: "the scheduler nominates this member for a Pod of the claim"},
		{phase: Unplaced, when: []fact{not(mirrors)}, owner: RootPVC, until: "the class changes: host_claim reports why"},
		{phase: Placing, when: []fact{placed, sourceAway}, owner: RootPVC, reason: awaySources, report: (*volume.Observed).ReportSourceAway, until: "the data source is ready, or the claim goes"},
		{phase: Unplaced, when: []fact{sourceAway}, owner: RootPVC, until: "source selects the member that has it: host_claim reports why not"},
		{phase: Unplaced, when: []fact{not(pinned), classRefused}, step: Unselect, owner: RootPVC, reason: "ClassNotFound, ClassKeepsOff", report: (*volume.Observed).ReportRefused},
		{phase: Unplaced, when: []fact{refused}, owner: RootPVC, reason: refusals, report: (*volume.Observed).ReportRefused, until: "what refuses it changes"},
		{phase: Unplaced, when: []fact{sourceRefused}, owner: RootPVC, reason: sources, report: (*volume.Observed).ReportSource, until: "its data source changes, or the claim goes"},
		{phase: Unplaced, when: []fact{not(placed), apart}, owner: RootPVC, until: "recovery selects the member that has it"},
		{phase: Placing, when: []fact{not(namespaced)}, owner: RootPVC, until: "leaf_namespace creates the namespace"},
		{phase: Unconfirmed, when: []fact{not(placed), maybeElsewhere}, owner: RootPVC, reason: v1alpha1.ReasonPlacementUnconfirmed, report: (*volume.Observed).ReportMaybeElsewhere, until: askedAgain},
		{phase: Placing, when: []fact{not(placed)}, step: Place, owner: RootPVC},
		{phase: Placing, step: CreateClaim, owner: RootPVC},
	}},
	{title: "The claim names no volume, and the scheduler did not select this member", when: []fact{alone, not(named)}, rows: []row{
		{phase: Unplacing, when: []fact{not(hasClaim), placedHere}, step: Unplace, owner: RootPVC},
		{phase: Withdrawing, when: []fact{claimUnbound}, step: Withdraw, owner: RootPVC},
		{phase: Terminating, when: []fact{provisionedDeleting}, owner: RootPVC, reason: v1alpha1.ReasonVolumeTerminating, report: (*volume.Observed).ReportProvisionedTerminating, until: "the claim is gone"},
		{phase: Unplaced, owner: RootPVC, until: "the scheduler selects this member, or the claim is bound"},
	}},
}

// refusals and failures are the reasons for which a member rejects a claim or fails to provision
// it.
const (
	refusals = "NamespaceConflict and the like"
	failures = "ProvisioningFailed and the like"
	// sources are the reasons for which a member cannot create a claim from its data source.
	sources = "SourceNotReady, SourceMismatch"
	// awaySources are the reasons for which the data source cannot be used here.
	awaySources = "SourceNotReady, SourceElsewhere, SourceGone"
	// askedAgain is what ends the wait for other members, whose events do not enqueue the claim
	// here.
	askedAgain = "the claim is placed, or each of the other members has answered that it has none; root_pvc asks every 10 s"
)

// adopting returns the rows for a claim that requests a volume which it does not have yet.
func adopting() []row {
	return []row{
		{phase: Adopting, when: []fact{not(ownClass)}, owner: RootPVC, until: "the class is one of Xylem's"},
		{phase: Adopting, when: []fact{placedAway}, owner: RootPVC, reason: v1alpha1.ReasonPlacedElsewhere, report: (*volume.Observed).ReportElsewhere, until: "the claim is placed here, or nowhere"},
		{phase: Adopting, when: []fact{rivals}, owner: RootPVC, reason: v1alpha1.ReasonAmbiguousVolume, report: (*volume.Observed).ReportRivals, until: "one member has such a volume"},
		{phase: Adopting, when: []fact{unadoptable}, owner: RootPVC, reason: "AdoptionUnconfirmed, VolumeMismatch", report: (*volume.Observed).ReportUnadoptable, until: "an admin allows it, or the claim changes"},
		{phase: Placing, when: []fact{not(placed)}, step: Place, owner: RootPVC},
	}
}

// unrecorded returns the rows for a leaf claim whose root is not placed. Xylem records the
// placement first. So either the host was restored from an older state, or somebody in the
// member created the leaf claim with this host's stamp, to get the root there (I8).
func unrecorded(when ...fact) []row {
	with := func(facts ...fact) []fact { return slices.Concat(when, facts) }
	return []row{
		{phase: Placing, when: with(confirmed), step: Place, owner: RootPVC},
		{phase: Withdrawing, when: with(claimUnbound), step: Withdraw, owner: RootPVC},
		{phase: Unconfirmed, when: with(hostUnconfirmed), owner: RootPVC, reason: v1alpha1.ReasonAdoptionUnconfirmed, report: (*volume.Observed).ReportHostUnconfirmed, until: "an admin confirms the restore of the host"},
		{phase: Unconfirmed, when: with(), owner: RootPVC, reason: v1alpha1.ReasonAdoptionUnconfirmed, report: (*volume.Observed).ReportNeverPlaced, until: "an admin allows it, or the leaf claim is gone"},
	}
}
