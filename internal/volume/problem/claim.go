package problem

import (
	"fmt"
	"strconv"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/text"
	"github.com/xylem-io/xylem/internal/volume"
)

// ReportFailure reports why the member does not provision the volume.
func ReportFailure(s *volume.Observed) *mirror.Refusal {
	problem := failure(s)
	if from := s.From(); problem != nil && from != nil && from.Of.Placed() {
		return mirror.Refuse(problem.Reason, "%s. Xylem does not try other members: only this one has %s, from which the claim is created", problem.Message, from.Of)
	}
	return problem
}

// failure returns the evidence that the member cannot provision the volume, or nil. A provisioner's
// failure takes precedence, because it may cause a scheduling failure.
func failure(s *volume.Observed) *mirror.Refusal {
	a := s.Placement.Attempt
	problem := a.Provisioning
	for _, c := range a.Consumers {
		if problem == nil {
			problem = c.Problem
		}
	}
	if problem == nil {
		return nil
	}
	for _, c := range a.Consumers {
		if c.Bound != "" {
			return mirror.Refuse(problem.Reason, "%s. Xylem does not try other members: Pod %q also uses claim %q, whose volume is in member %q",
				problem.Message, c.Name, c.Bound, s.Member.Registration)
		}
	}
	return problem
}

// ReportRivals reports which other members also have a volume that the claim requests.
func ReportRivals(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonAmbiguousVolume, "volume %q is in member %q, and in %s: each was provisioned for an earlier claim with this name. Ask the members' admins to delete all of them except the right one",
		s.Requested().Name, s.Member.Registration, text.Quoted(s.Placement.Rivals...))
}

// ReportUnknown reports that Xylem cannot determine which of two volumes belongs to the claim.
func ReportUnknown(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeMismatch, "the claim names volume %q, but its counterpart in member %q is bound to volume %q: Xylem cannot determine which one has the claim's data. "+
		"Check PersistentVolume %q in the host, and keep both volumes until you know", s.Root.Spec.VolumeName, s.Member.Registration, s.Claim.Spec.VolumeName, s.Root.Spec.VolumeName)
}

// ReportSecond reports that the claim has a second volume in this member, in addition to the one
// that it is bound to.
func ReportSecond(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonSurplusVolume, "member %q has a second volume %q for the claim, which is bound to volume %q elsewhere. "+
		"Xylem keeps the data of both. If nobody needs the second volume, delete claim \"%s/%s\" in that member",
		s.Member.Registration, s.Claim.Spec.VolumeName, s.Root.Spec.VolumeName, s.Claim.Namespace, s.Claim.Name)
}

// ReportHostUnconfirmed reports that no admin has confirmed the restore of the host to a state
// before the claim was placed.
func ReportHostUnconfirmed(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonAdoptionUnconfirmed, "member %q has volume %q for this claim, but the claim is not placed in any member: the host may have been restored to a state before the claim was placed. "+
		"To let Xylem use the volume, confirm the restore as ClusterRegistration %q describes. Xylem uses it only if it is older than the restore", s.Member.Registration, s.Claim.Spec.VolumeName, s.Member.Registration)
}

// ReportNeverPlaced reports that the member has a volume for a claim that was never placed there.
func ReportNeverPlaced(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonAdoptionUnconfirmed, "member %q has volume %q for this claim, which Xylem never placed there: a user of that member may have created it. "+
		"Xylem does not use it. If it belongs to the claim, an admin can allow its use: `kubectl annotate clusterregistration %s %s=%s`. Otherwise, ask the member's admin to remove claim \"%s/%s\" there",
		s.Member.Registration, s.Claim.Spec.VolumeName, s.Member.Registration, v1alpha1.AnnotationAdopt, s.Claim.Spec.VolumeName, s.Claim.Namespace, s.Claim.Name)
}

// ReportMaybeElsewhere reports that the claim may have been placed in another member before the
// host was restored, so that Xylem does not place it in this one.
func ReportMaybeElsewhere(s *volume.Observed) *mirror.Refusal {
	if in := s.Placement.Counterparts.In; len(in) > 0 {
		return mirror.Refuse(v1alpha1.ReasonPlacementUnconfirmed, "a counterpart of this claim exists in %s, and the claim has not been placed since the host was restored: Xylem does not place it in member %q as well. "+
			"If that ClusterRegistration requests the annotation %s, confirm the restore, and Xylem uses the counterpart. If the counterpart does not belong to this claim, ask that member's admin to delete claim \"%s/%s\" there",
			text.Quoted(in...), s.Member.Registration, v1alpha1.AnnotationConfirmRestore, s.Root.Namespace, s.Root.Name)
	}
	return mirror.Refuse(v1alpha1.ReasonPlacementUnconfirmed, "the claim may have been placed in %s before the host was restored: Xylem cannot check this now, and does not place the claim in member %q. "+
		"Make each of these members reachable, as its ClusterRegistration describes, or deregister it. If the claim has no data yet, you can re-create it instead",
		text.Quoted(s.Placement.Counterparts.Unasked...), s.Member.Registration)
}

// ReportTaken reports that the member still has a volume for a promise that an admin abandoned
// while that member had it.
func ReportTaken(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonSurplusVolume, "member %q has volume %q for this claim, which no longer has a volume: an admin abandoned PersistentVolume %q while that member had it. "+
		"Xylem keeps the data, and uses it only for a Pod of the claim that is scheduled to that member. If nobody needs it, delete claim \"%s/%s\" in that member",
		s.Member.Registration, s.Claim.Spec.VolumeName, s.Promise.Name, s.Claim.Namespace, s.Claim.Name)
}

// ReportVanished reports that the leaf claim waits for a volume that the member no longer has.
func ReportVanished(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeLost, "the claim's counterpart in member %q waits for volume %q, which no longer exists there, perhaps because the host was restored to a state before its deletion. "+
		"Delete claim \"%s/%s\" in that member, and Xylem provisions a new disk", s.Member.Registration, s.Claim.Spec.VolumeName, s.Claim.Namespace, s.Claim.Name)
}

const terminated = "%s, which was created for the claim, is being deleted, so the claim cannot be bound to it. Delete the claim and create it again"

// ReportMirrorTerminating reports that the host PV of the claim is being deleted.
func ReportMirrorTerminating(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeTerminating, terminated, "PersistentVolume "+strconv.Quote(s.Placement.Mirror.Name))
}

// ReportPromiseTerminating reports that the promise of the claim is being deleted, and is
// abandoned.
func ReportPromiseTerminating(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeTerminating, "PersistentVolume %q of the claim has no disk yet, and is being deleted and abandoned, so it will not get one. Delete the claim and create it again", s.Promise.Name)
}

// ReportProvisionedTerminating reports that the leaf PV of the claim is being deleted.
func ReportProvisionedTerminating(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeTerminating, terminated, fmt.Sprintf("volume %q in member %q", s.Placement.Provisioned.Name, s.Member.Registration))
}
