package problem

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
	"github.com/xylem-io/xylem/internal/volume"
)

// Mistaken explains why the root's volume in the host does not represent this one, although it has
// or had its name. This volume may be the root's own disk, so it must not be deleted.
func Mistaken(s *volume.Observed) *mirror.Refusal {
	name, unused := s.Root.Spec.VolumeName, fmt.Sprintf("leaf volume %q in member %q may be this claim's own disk, but Xylem does not use it: ", s.Name, s.Member.Registration)
	if i := slices.IndexFunc(s.Earlier, func(pv corev1.PersistentVolume) bool {
		return name == pv.Name || name == "" && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == s.Root.UID
	}); i >= 0 {
		return mirror.Refuse(v1alpha1.ReasonVolumeReplaced, "%smember %q has re-created it with the same name, and volume %q of the claim represents the earlier one. "+
			"To use it, make sure that its disk is the right one, then delete the claim and create it again with volumeName %q. Xylem keeps its data",
			unused, s.Member.Registration, s.Earlier[i].Name, s.Name)
	}
	if hostpv.IsNameFor(name, s.Name, s.Member.ClusterID) && s.HostName(s.Root) != name {
		return mirror.Refuse(v1alpha1.ReasonVolumeMismatch, "%svolume %q, which the claim is bound to, does not represent it: another volume has that name. "+
			"Find out which of the two has the claim's data before you delete either. Xylem keeps its data", unused, name)
	}
	return nil
}

// ReportSurplus reports that the claim is bound to another volume, or placed elsewhere.
func ReportSurplus(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonSurplusVolume, "member %q has volume %q for this claim, which Xylem does not use: %s. Xylem keeps its data. Delete the volume there if nobody needs it",
		s.Member.Registration, s.Name, s.Elsewhere())
}

// ReportHeldByEarlier reports that the volume was replaced while its leaf claim still exists.
func ReportHeldByEarlier(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeReplaced, "volume %q of the earlier claim %q in member %q was replaced by another one with the same name: PersistentVolume %q in the host represents the earlier one. "+
		"Xylem keeps the data of both, and continues when that PersistentVolume is released. If it stays Bound, check its claim",
		s.Name, s.Origin.Root, s.Member.Registration, s.Earlier[0].Name)
}

// ReportReplaced reports that the member has another volume with the same name.
func ReportReplaced(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeReplaced, "volume %q in member %q was replaced: it has UID %q, and the claim is bound to the one with UID %q. "+
		"Xylem does not use it, because it may hold other data. Rescue the data that you need in the member, then delete the claim: Xylem destroys neither",
		s.Name, s.Member.Registration, s.Recreated.UID, s.UID)
}

// ReportLost reports that the volume no longer exists in the member.
func ReportLost(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeLost, "volume %q, which the claim is bound to, is no longer in member %q. Its disk may still exist: the PersistentVolume in the host has its driver and handle. Rescue the data there, then delete the claim",
		s.Name, s.Member.Registration)
}

// ReportTerminating reports that the volume is being deleted in the member.
func ReportTerminating(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeTerminating, "volume %q, which the claim is bound to, is being deleted in member %q. It stays while the claim uses it, and Xylem keeps its disk. "+
		"The deletion cannot be undone. Copy the data that you need, then delete the claim", s.Name, s.Member.Registration)
}

// ReportMismatch reports that the leaf claim names another volume.
func ReportMismatch(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeMismatch, "the claim is bound to volume %q, but its counterpart in member %q is bound to volume %q: Xylem cannot determine which one has the claim's data. Find out before you delete either",
		s.Name, s.Member.Registration, s.Claim.Spec.VolumeName)
}

// ReportUnstamped reports that the leaf PV has lost its stamp.
func ReportUnstamped(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeMismatch, "volume %q in member %q, which the claim is bound to, does not name the claim's counterpart, and somebody has removed Xylem's labels and annotations from it: Xylem does not write to it. "+
		"Ask the member's admin to restore them: label %s=%s, annotations %s=%s and %s=%s", s.Name, s.Member.Registration,
		v1alpha1.LabelHost, s.Member.HostID, v1alpha1.AnnotationRoot, s.Origin.Root, v1alpha1.AnnotationRootUID, s.Origin.UID)
}

// ReportInUse reports which claim of the member uses the volume.
func ReportInUse(s *volume.Observed) *mirror.Refusal {
	ref := s.Leaf.Spec.ClaimRef
	return mirror.Refuse(v1alpha1.ReasonVolumeMismatch, "volume %q, which the claim is bound to, is in use by claim \"%s/%s\" in member %q, which is not the claim's counterpart. "+
		"Xylem does not take it away. Find out whose data it contains. If the data belongs to this claim, ask the member's admin to delete the other claim", s.Name, ref.Namespace, ref.Name, s.Member.Registration)
}

// ReportTwins reports which two host PVs represent the volume.
func ReportTwins(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeMismatch, "PersistentVolumes %q and %q both represent volume %q in member %q. Xylem keeps its data, and does nothing else with it until one of the two is deleted. "+
		"Delete whichever is not bound to a claim", s.Host.Name, s.Twin.Name, s.Name, s.Member.Registration)
}

// ReportHolder reports which other root's leaf claim still has the volume.
func ReportHolder(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeMismatch, "volume %q, which the claim is bound to, is still in use by the counterpart of claim %q in member %q. "+
		"Delete that claim to use its volume: Xylem keeps the data", s.Name, s.HolderOrigin.Root, s.Member.Registration)
}

// ReportClaimLost reports that the leaf claim has lost the volume.
func ReportClaimLost(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonVolumeLost, "the claim's counterpart in member %q has lost volume %q. Check that volume and the counterpart there", s.Member.Registration, s.Name)
}

// ReportAttributesFixed reports that a VolumeAttributesClass cannot be removed.
func ReportAttributesFixed(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonModifyUnsupported, "the claim has no VolumeAttributesClass, but its volume in member %q has %q. Kubernetes does not allow its removal. "+
		"Set volumeAttributesClassName to the class that the volume should have", s.Member.Registration, pvc.HostAttributesClass(s.Claim, *s.Claim.Status.CurrentVolumeAttributesClassName))
}

// ReportUnsupported reports how an unsupported reclaim policy is treated.
func ReportUnsupported(s *volume.Observed) *mirror.Refusal {
	return mirror.Refuse(v1alpha1.ReasonReclaimPolicyUnsupported, "Xylem keeps leaf volume %q in member %q: it does not support reclaim policy %q. Set persistentVolumeReclaimPolicy to Delete to destroy the data, or to Retain to keep it",
		s.Name, s.Member.Registration, s.Host.Spec.PersistentVolumeReclaimPolicy)
}

// ReportKept reports why a disk that no Pod uses is kept.
func ReportKept(s *volume.Observed) *mirror.Refusal {
	if s.Host.Annotations[v1alpha1.AnnotationConsumer] == "" {
		return mirror.Refuse(v1alpha1.ReasonReleaseRefused, "no Pod uses the volume, and Xylem keeps its disk in member %q: it has no record of a Pod that used it, perhaps because the host was restored. "+
			"The disk is destroyed with the claim: delete the claim if nobody needs the data", s.Member.Registration)
	}
	return mirror.Refuse(v1alpha1.ReasonReleaseRefused, "no Pod uses the volume, but Xylem keeps its disk in member %q: the reclaim policy is Retain in the host or in the member. Set both to Delete to release it", s.Member.Registration)
}

// ReportElsewhere reports that the claim is placed in another member. The name of that member's
// registration may be unknown.
func ReportElsewhere(s *volume.Observed) *mirror.Refusal {
	where := fmt.Sprintf("cluster %q, which is not registered", s.PlacedIn())
	if s.PlacedRegistration != "" {
		where = fmt.Sprintf("member %q", s.PlacedRegistration)
	}
	return mirror.Refuse(v1alpha1.ReasonPlacedElsewhere, "the claim is placed in %s: member %q waits until none of the claim's objects are left there. Run the Pod there, or delete these objects", where, s.Member.Registration)
}
