package volume

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
)

// ReportMistakenHostVolume explains why the root's host PV does not represent this leaf volume, although the names
// match, or matched once. The leaf volume may have the root's data, so it must not be deleted.
func ReportMistakenHostVolume(s *Observed) *mirror.Refusal {
	name := s.Root.Spec.VolumeName
	if i := slices.IndexFunc(s.EarlierHosts, func(pv corev1.PersistentVolume) bool {
		return name == pv.Name || name == "" && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == s.Root.UID
	}); i >= 0 {
		return mirror.NewRefusal(v1alpha1.ReasonVolumeReplaced, "leaf volume %q in member %q may be this claim's own disk, but Xylem does not use it: the volume was re-created with the same name, and PersistentVolume %q of the claim represents the earlier volume. "+
			"To use the re-created volume, make sure that its disk is the right one, then delete the claim and create it again with volumeName %q. Xylem keeps the data of the re-created volume",
			s.Name, s.Member.Registration, s.EarlierHosts[i].Name, s.Name)
	}
	if hostpv.IsHostVolumeNameFor(name, s.Name, s.Member.ClusterID) && s.HostVolumeName(s.Root) != name {
		return mirror.NewRefusal(v1alpha1.ReasonVolumeMismatch, "leaf volume %q in member %q may be this claim's own disk, but Xylem does not use it: the claim names PersistentVolume %q, which does not represent the leaf volume. "+
			"Find out which of the two volumes has the claim's data before you delete either. Xylem keeps the data of the leaf volume", s.Name, s.Member.Registration, name)
	}
	return nil
}

// ReportSurplusVolume reports that the claim is bound to another volume, or placed elsewhere.
func ReportSurplusVolume(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonSurplusVolume, "member %[1]q has a surplus volume %[2]q for this claim: %[3]s. Xylem does not use the volume, but keeps its data. If nobody needs the data, delete the volume in member %[1]q",
		s.Member.Registration, s.Name, s.WhyNotOwnedByRoot())
}

// ReportHeldByEarlierClaim reports that the volume was replaced while its leaf claim still exists.
func ReportHeldByEarlierClaim(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeReplaced, "volume %q of the earlier claim %q in member %q was replaced by another volume with the same name: PersistentVolume %q in the host represents the earlier volume. "+
		"Xylem keeps the data of both volumes, and continues when the PersistentVolume is released. If the PersistentVolume stays Bound, check its claim",
		s.Name, s.Origin.Root, s.Member.Registration, s.EarlierHosts[0].Name)
}

// ReportVolumeReplaced reports that the member has another volume with the same name.
func ReportVolumeReplaced(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeReplaced, "volume %q in member %q was replaced: the volume now has UID %q, but the claim is bound to the volume with UID %q. "+
		"Xylem does not use the new volume, because it may contain other data. Rescue the data that you need in the member, then delete the claim. Xylem destroys neither volume",
		s.Name, s.Member.Registration, s.Recreated.UID, s.UID)
}

// ReportVolumeLost reports that the volume no longer exists in the member.
func ReportVolumeLost(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeLost, "volume %q, to which the claim is bound, is no longer in member %q. Its disk may still exist: the PersistentVolume in the host records the driver and the handle of the disk. Rescue the data in the member, then delete the claim",
		s.Name, s.Member.Registration)
}

// ReportVolumeNeeded reports that others still need the data of a volume whose claim is gone.
func ReportVolumeNeeded(s *Observed) *mirror.Refusal {
	why := "Xylem continues once these claims have their disks: create a Pod for each. Or delete these claims, if they no longer need the data"
	if len(hostpv.MembersWithCopies(s.Host)) > 0 {
		why = "Xylem removes each copy as soon as no Pod in that member uses it. If one of these members is away, make it reachable, or deregister it. " +
			"If a copy stays although no Pod uses it, ask that member's admin to set the reclaim policy of the copy's PersistentVolume to Retain"
	}
	return mirror.NewRefusal(v1alpha1.ReasonStillNeeded, "volume %q in member %q is not released yet, because its data is still needed: %s. %s",
		s.Name, s.Member.Registration, strings.Join(slices.Concat(s.Copies, s.Needs), ", "), why)
}

// ReportVolumeTerminating reports that the volume is being deleted in the member.
func ReportVolumeTerminating(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeTerminating, "volume %q, to which the claim is bound, is being deleted in member %q. Kubernetes keeps the volume while the claim uses it, and Xylem keeps the disk. "+
		"The deletion cannot be undone. Copy the data that you need, then delete the claim", s.Name, s.Member.Registration)
}

// ReportVolumeMismatch reports that the leaf claim names another volume.
func ReportVolumeMismatch(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeMismatch, "the claim is bound to volume %q, but its counterpart in member %q is bound to volume %q: Xylem cannot determine which volume has the claim's data. Find out before you delete either volume",
		s.Name, s.Member.Registration, s.LeafClaim.Spec.VolumeName)
}

// ReportStampLost reports that the leaf PV has lost its stamp.
func ReportStampLost(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeMismatch, "the claim is bound to volume %q in member %q. The volume does not name the claim's counterpart, and somebody has removed Xylem's labels and annotations from the volume, so Xylem does not write to it. "+
		"Ask the member's admin to restore them: label %s=%s, annotations %s=%s and %s=%s", s.Name, s.Member.Registration,
		v1alpha1.LabelHost, s.Member.HostID, v1alpha1.AnnotationRoot, s.Origin.Root, v1alpha1.AnnotationRootUID, s.Origin.UID)
}

// ReportVolumeInUse reports which claim of the member uses the volume.
func ReportVolumeInUse(s *Observed) *mirror.Refusal {
	ref := s.Leaf.Spec.ClaimRef
	return mirror.NewRefusal(v1alpha1.ReasonVolumeMismatch, "volume %q, to which the claim is bound, is in use in member %q by claim \"%s/%s\", which is not the claim's counterpart. "+
		"Xylem does not take the volume away from that claim. Find out whose data the volume contains. If the data belongs to this claim, ask the member's admin to delete the other claim", s.Name, s.Member.Registration, ref.Namespace, ref.Name)
}

// ReportTwinHostVolumes reports which two host PVs represent the volume.
func ReportTwinHostVolumes(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeMismatch, "PersistentVolumes %q and %q both represent volume %q in member %q. Xylem keeps the volume's data, and does nothing else with the volume until one of the two PersistentVolumes is deleted. "+
		"Delete whichever is not bound to a claim", s.Host.Name, s.TwinHost.Name, s.Name, s.Member.Registration)
}

// ReportOtherHolder reports which other root's leaf claim is still bound to the volume.
func ReportOtherHolder(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeMismatch, "volume %q, to which the claim is bound, is still in use by the counterpart of claim %q in member %q. "+
		"To use the volume, delete that claim. Xylem keeps the data", s.Name, s.HolderOrigin.Root, s.Member.Registration)
}

// ReportLeafClaimLost reports that the leaf claim has lost the volume.
func ReportLeafClaimLost(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonVolumeLost, "the claim's counterpart in member %q has lost volume %q. Check the volume and the counterpart in that member", s.Member.Registration, s.Name)
}

// ReportAttributesClassNotRemovable reports that a VolumeAttributesClass cannot be removed.
func ReportAttributesClassNotRemovable(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonModifyUnsupported, "the claim names no VolumeAttributesClass, but its volume in member %q has VolumeAttributesClass %q. Kubernetes does not allow the removal of the class. "+
		"Set volumeAttributesClassName to the class that the volume should have", s.Member.Registration, pvc.HostAttributesClass(s.LeafClaim, *s.LeafClaim.Status.CurrentVolumeAttributesClassName))
}

// ReportPolicyUnsupported reports how an unsupported reclaim policy is treated.
func ReportPolicyUnsupported(s *Observed) *mirror.Refusal {
	return mirror.NewRefusal(v1alpha1.ReasonReclaimPolicyUnsupported, "Xylem keeps leaf volume %q in member %q, because Xylem does not support reclaim policy %q. Set persistentVolumeReclaimPolicy to Delete to destroy the data, or to Retain to keep it",
		s.Name, s.Member.Registration, s.Host.Spec.PersistentVolumeReclaimPolicy)
}

// ReportUnusedDiskKept reports why a disk that no Pod uses is kept.
func ReportUnusedDiskKept(s *Observed) *mirror.Refusal {
	if s.Host.Annotations[v1alpha1.AnnotationConsumer] == "" {
		return mirror.NewRefusal(v1alpha1.ReasonReleaseRefused, "no Pod uses the volume, but Xylem keeps its disk in member %q: Xylem has no record of a Pod that used the disk, perhaps because the host was restored. "+
			"If nobody needs the data, delete the claim. Xylem then destroys the disk, unless the reclaim policy is Retain in the host or in the member", s.Member.Registration)
	}
	return mirror.NewRefusal(v1alpha1.ReasonReleaseRefused, "no Pod uses the volume, but Xylem keeps its disk in member %q: the reclaim policy is Retain in the host or in the member. Set both to Delete to release the disk", s.Member.Registration)
}

// ReportPlacedElsewhere reports that the claim is placed in another member. The name of that member's
// registration may be unknown.
func ReportPlacedElsewhere(s *Observed) *mirror.Refusal {
	where := fmt.Sprintf("cluster %q, which is not registered", s.PlacedClusterID())
	if s.PlacedRegistration != "" {
		where = fmt.Sprintf("member %q", s.PlacedRegistration)
	}
	return mirror.NewRefusal(v1alpha1.ReasonPlacedElsewhere, "the claim is placed in %s: until no objects of the claim are left in that cluster, member %q waits. Run the Pod in that cluster, or delete the objects", where, s.Member.Registration)
}
