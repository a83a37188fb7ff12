package volume

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/wording"
)

// ReportLeafClaimRefused reports why the root cannot have a leaf claim, or nil. It returns nil if no member is
// observed.
func ReportLeafClaimRefused(s *Observed) *mirror.Refusal {
	if s.Placement == nil {
		return nil
	}
	_, refusal := LeafClaim(s)
	return refusal
}

// ReportProvisioningFailure reports why the member does not provision the volume.
func ReportProvisioningFailure(s *Observed) *mirror.Refusal {
	problem := provisioningFailure(s)
	if problem == nil {
		return s.Placement.Attempt.SilenceProblem
	}
	if from := s.ObservedSource(); from != nil && from.Of.IsInOneMember() {
		return mirror.NewRefusal(problem.Reason, "%s. Xylem does not try other members, because only member %q has the data source of the claim, %s", problem.Message, s.Member.Registration, from.Of)
	}
	return problem
}

// provisioningFailure returns the evidence that the member cannot provision the volume, or nil. A provisioner's
// failure takes precedence, because it may cause a scheduling failure.
func provisioningFailure(s *Observed) *mirror.Refusal {
	a := s.Placement.Attempt
	problem := a.ProvisioningProblem
	for _, c := range a.Consumers {
		if problem == nil {
			problem = c.Problem
		}
	}
	if problem == nil {
		return nil
	}
	for _, c := range a.Consumers {
		if c.OtherBoundClaim != "" {
			return mirror.NewRefusal(problem.Reason, "%s. Xylem does not try other members, because Pod %q also uses claim %q, whose volume is in member %q",
				problem.Message, c.Name, c.OtherBoundClaim, s.Member.Registration)
		}
	}
	return problem
}

// ReportRivalMembers reports which other members also have a volume that the claim requests.
func ReportRivalMembers(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonAmbiguousVolume, "volume %q exists in member %q and also in %s: each of these volumes was provisioned for an earlier claim with this claim's name. Ask the members' admins to delete all of these volumes except the right one",
		s.RequestedLeafVolume().Name, s.Member.Registration, wording.QuotedNames(s.Placement.RivalMembers...))
}

// ReportTwoPossibleVolumes reports that Xylem cannot determine which of two volumes belongs to the claim.
func ReportTwoPossibleVolumes(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeMismatch, "the claim names volume %q, but its counterpart in member %q is bound to volume %q: Xylem cannot determine which volume has the claim's data. "+
		"Check PersistentVolume %q in the host, and keep both volumes until you know which one has the data", s.Root.Spec.VolumeName, s.Member.Registration, s.LeafClaim.Spec.VolumeName, s.Root.Spec.VolumeName)
}

// ReportSecondVolume reports that the claim has a second volume in this member, in addition to the one
// that it is bound to.
func ReportSecondVolume(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonSurplusVolume, "member %q has a second volume %q for the claim, which is bound to volume %q elsewhere. "+
		"Xylem keeps the data of both volumes. If nobody needs the second volume, delete claim \"%s/%s\" in that member",
		s.Member.Registration, s.LeafClaim.Spec.VolumeName, s.Root.Spec.VolumeName, s.LeafClaim.Namespace, s.LeafClaim.Name)
}

// ReportHostRestoreUnconfirmed reports that no admin has confirmed the restore of the host to a state
// before the claim was placed.
func ReportHostRestoreUnconfirmed(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonAdoptionUnconfirmed, "member %q has volume %q for this claim, but the claim is not placed in any member: the host may have been restored to a state before the claim was placed. "+
		"To let Xylem use the volume, confirm the restore as ClusterRegistration %q describes. Xylem uses the volume only if it is older than the restore", s.Member.Registration, s.LeafClaim.Spec.VolumeName, s.Member.Registration)
}

// ReportNeverPlaced reports that the member has a volume for a claim that, as far as Xylem knows, was
// never placed there.
func ReportNeverPlaced(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonAdoptionUnconfirmed, "member %q has volume %q for this claim, but Xylem has no record that it placed the claim in that member: a user of the member may have created the volume, or somebody removed the claim's annotation "+v1alpha1.AnnotationPlacedIn+". "+
		"Xylem does not use the volume. If it belongs to the claim, an admin can allow its use with `kubectl annotate clusterregistration %s %s=%s`. Otherwise, ask the member's admin to remove claim \"%s/%s\" in the member",
		s.Member.Registration, s.LeafClaim.Spec.VolumeName, s.Member.Registration, v1alpha1.AnnotationAdopt, s.LeafClaim.Spec.VolumeName, s.LeafClaim.Namespace, s.LeafClaim.Name)
}

// ReportProvisionedLost reports that the leaf claim is Lost: the volume that was provisioned for the claim
// is gone, or its claimRef names another claim.
func ReportProvisionedLost(s *Observed) *mirror.Refusal {
	if s.Placement.ProvisionedVolume != nil {
		return mirror.NewRefusal(v1alpha1.ReasonVolumeLost, "volume %q in member %q, which was provisioned for the claim, %s, so the claim's counterpart there cannot use it. "+
			"Find out whose data the volume contains. Unless another claim needs it, ask the member's admin to set the volume's spec.claimRef to namespace %q, name %q and uid %q",
			s.LeafClaim.Spec.VolumeName, s.Member.Registration, describeClaimRef(s.Placement.ProvisionedVolume), s.LeafClaim.Namespace, s.LeafClaim.Name, s.LeafClaim.UID)
	}
	instead := "delete the claim"
	if s.Placement.UnboundMirror == nil && (s.Promise != nil || s.Root.Spec.VolumeName == "") {
		instead = fmt.Sprintf("ask for the deletion of claim \"%s/%s\" in that member. Xylem then provisions another volume", s.LeafClaim.Namespace, s.LeafClaim.Name)
	}
	return mirror.NewRefusal(v1alpha1.ReasonVolumeLost, "volume %q, which member %q provisioned for the claim, no longer exists there. If its data is needed, ask the member's admin to create the PersistentVolume again. Otherwise, %s",
		s.LeafClaim.Spec.VolumeName, s.Member.Registration, instead)
}

// ReportHostClaimRefDiverted reports that the claimRef of the claim's host PV does not name the claim.
func ReportHostClaimRefDiverted(s *Observed) *mirror.Refusal {
	host, what := s.Placement.Diverted, "which represents the claim's volume"
	if s.Root.Spec.VolumeName != "" {
		what = "to which the claim was bound"
	}
	return mirror.NewRefusal(v1alpha1.ReasonVolumeMismatch, "PersistentVolume %q, %s, %s, so Kubernetes does not bind this claim to it. Unless another claim needs the volume, which is in member %q, set the PersistentVolume's spec.claimRef to namespace %q, name %q and uid %q",
		host.Name, what, describeClaimRef(host), s.Member.Registration, s.Root.Namespace, s.Root.Name, s.Root.UID)
}

// describeClaimRef describes a PV's claimRef.
func describeClaimRef(pv *corev1.PersistentVolume) string {
	if ref := pv.Spec.ClaimRef; ref != nil {
		return fmt.Sprintf("has a claimRef to claim \"%s/%s\" with uid %q", ref.Namespace, ref.Name, ref.UID)
	}
	return "has no claimRef"
}

// ReportRequestedVolumeInUse reports that a claim that is not Xylem's uses the volume that the root requests.
func ReportRequestedVolumeInUse(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeMismatch, "member %q has volume %q for this claim, but claim \"%s/%s\" in the member, which Xylem did not create, or which has lost Xylem's labels and annotations, uses the volume. "+
		"Xylem does not take the volume away from that claim. Find out whose data the volume contains. If the data belongs to this claim, ask the member's admin to delete the claim in the member. Otherwise, delete this claim, and create it with another name",
		s.Member.Registration, s.Placement.RequestedVolume.Name, s.Root.Namespace, s.Root.Name)
}

// ReportNoCounterpart reports that neither the claim's host PV nor its leaf claim exists.
func ReportNoCounterpart(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeLost, "PersistentVolume %q, to which the claim was bound, does not exist in the host, and member %q has no counterpart of the claim from which Xylem could create it again. "+
		"Before you delete the claim, check whether that member still has its data: look for claim \"%s/%s\" and for volumes with annotation %s=%[3]s/%[4]s", s.Root.Spec.VolumeName, s.Member.Registration,
		s.Root.Namespace, s.Root.Name, v1alpha1.AnnotationRoot)
}

// ReportVolumeNotFound reports that the volume that the claim names does not exist in the host, and that this
// member, in which the claim is placed, has no such volume that the claim may use.
func ReportVolumeNotFound(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeNotFound, "the claim names PersistentVolume %q, which does not exist in the host, and member %q, in which the claim is placed, has no volume with that name that the claim may use. "+
		"spec.volumeName cannot be changed: delete the claim, and create it again with another spec.volumeName, or without one to get a new volume", s.Root.Spec.VolumeName, s.Member.Registration)
}

// ReportMayBePlacedElsewhere reports that the claim may have been placed in another member before the
// host was restored, so that Xylem does not place it in this one.
func ReportMayBePlacedElsewhere(s *Observed) *mirror.Refusal {
	if in := s.Placement.Counterparts.Found; len(in) > 0 && s.Promise != nil && s.PlacedClusterID() == s.Member.ClusterID {
		return mirror.NewRefusal(v1alpha1.ReasonPlacementUnconfirmed, "a counterpart of this claim exists in %s, although the claim was placed in member %q when the host was backed up, so Xylem does not provision another volume there. "+
			"Delete the Pods that use the claim in member %[2]q. If the ClusterRegistration of a member with a counterpart requests the annotation %[3]s, confirm the restore, and Xylem uses that counterpart",
			wording.QuotedNames(in...), s.Member.Registration, v1alpha1.AnnotationConfirmRestore)
	}
	if in := s.Placement.Counterparts.Found; len(in) > 0 {
		return mirror.NewRefusal(v1alpha1.ReasonPlacementUnconfirmed, "a counterpart of this claim exists in %s, and the claim has not been placed since the host was restored, so Xylem will not also place it in member %q. "+
			"If the ClusterRegistration of a member with a counterpart requests the annotation %s, confirm the restore, and Xylem uses that counterpart. If a counterpart does not belong to this claim, ask the admin of its member to delete claim \"%s/%s\"",
			wording.QuotedNames(in...), s.Member.Registration, v1alpha1.AnnotationConfirmRestore, s.Root.Namespace, s.Root.Name)
	}
	return mirror.NewRefusal(v1alpha1.ReasonPlacementUnconfirmed, "the claim may have been placed in %s before the host was restored: Xylem cannot check this now, so it does not place the claim in member %q. "+
		"Make each member where the claim may have been placed reachable, as its ClusterRegistration describes, or deregister it. If it is already being deregistered, its ClusterRegistration shows what the deletion waits for. If the claim has no data yet, you can re-create the claim instead",
		wording.QuotedNames(s.Placement.Counterparts.Unchecked...), s.Member.Registration)
}

// ReportAbandonedPromiseVolume reports that the member still has a volume for a promise that an admin abandoned
// while it was assigned to that member.
func ReportAbandonedPromiseVolume(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonSurplusVolume, "member %q has volume %q for this claim, which no longer has a disk: an admin abandoned PersistentVolume %q while it was assigned to that member. "+
		"Xylem keeps the data, and uses it only if a Pod that uses the claim is scheduled to that member. If nobody needs the data, delete claim \"%s/%s\" in that member",
		s.Member.Registration, s.LeafClaim.Spec.VolumeName, s.Promise.Name, s.LeafClaim.Namespace, s.LeafClaim.Name)
}

// ReportProvisionedVolumeVanished reports that the leaf claim waits for a volume that the member no longer has.
func ReportProvisionedVolumeVanished(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeLost, "the claim's counterpart in member %q waits for volume %q, which no longer exists there, perhaps because the host was restored to a state before its deletion. "+
		"Delete claim \"%s/%s\" in that member, and Xylem provisions a new disk", s.Member.Registration, s.LeafClaim.Spec.VolumeName, s.LeafClaim.Namespace, s.LeafClaim.Name)
}

const terminatingMessage = "%s, which was created for the claim, is being deleted, so the claim cannot be bound to it. Delete the claim and create it again"

// ReportMirrorTerminating reports that the host PV of the claim is being deleted.
func ReportMirrorTerminating(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeTerminating, terminatingMessage, "PersistentVolume "+strconv.Quote(s.Placement.UnboundMirror.Name))
}

// ReportUnmirroredTerminating reports that the leaf PV of the claim is being deleted, and that no host
// PV represents it.
func ReportUnmirroredTerminating(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeTerminating, "volume %q in member %q is being deleted, and the claim's PersistentVolume %q does not exist in the host. Kubernetes keeps the volume while the claim's counterpart in that member uses it, and Xylem keeps the disk. "+
		"The deletion cannot be undone. Copy the data that you need in the member, then delete the claim", s.Placement.ProvisionedVolume.Name, s.Member.Registration, s.Root.Spec.VolumeName)
}

// ReportPromiseGone reports that the promise of the claim was deleted, and cannot be re-created.
func ReportPromiseGone(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonBroken, "PersistentVolume %q, the promise for this claim, is gone, and Xylem cannot re-create it, because the claim's StorageClass %q does not exist, or is not a class of Xylem in promise mode. "+
		"If the promise had a disk, its member keeps the data. Create the class again, with its earlier parameters (if a class with this name exists, delete it first)", s.Root.Spec.VolumeName, hostpv.ClassNameOf(s.Root))
}

// ReportPromiseTerminating reports that the promise of the claim is being deleted, and is
// abandoned.
func ReportPromiseTerminating(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeTerminating, "an admin abandoned PersistentVolume %q of the claim, which has no disk yet and is being deleted, so the claim will not get a disk. Delete the claim and create it again", s.Promise.Name)
}

// ReportProvisionedTerminating reports that the leaf PV of the claim is being deleted.
func ReportProvisionedTerminating(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeTerminating, terminatingMessage, fmt.Sprintf("volume %q in member %q", s.Placement.ProvisionedVolume.Name, s.Member.Registration))
}
