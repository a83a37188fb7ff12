package report

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// IsClaimUsableDespite reports whether Pods can use a claim although one of its conditions reports a problem
// with the given reason: the claim is bound to a volume that has a disk in a member, and the problem
// only concerns a change, such as an expansion. volume may be nil.
func IsClaimUsableDespite(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, reason string) bool {
	if claim.Status.Phase != corev1.ClaimBound || volume == nil || reasonPreventsUse(reason) {
		return false
	}
	_, _, _, has := hostpv.LeafOfHostVolume(volume)
	return has
}

// reasonPreventsUse reports whether a reason on a claim that is bound to a disk means that Pods cannot use
// the disk: its volume is wrong, missing or elsewhere, or the member has no leaf claim for it. The
// reasons why a volume was not provisioned are no longer current for such a claim.
func reasonPreventsUse(reason string) bool {
	return slices.Contains([]string{
		v1alpha1.ReasonVolumeLost, v1alpha1.ReasonVolumeReplaced, v1alpha1.ReasonVolumeMismatch, v1alpha1.ReasonClusterGone,
		v1alpha1.ReasonAdoptionRefused, v1alpha1.ReasonConsentMissing, v1alpha1.ReasonPlacedElsewhere, v1alpha1.ReasonMemberAway,
		v1alpha1.ReasonNameTaken, v1alpha1.ReasonClassNotFound, v1alpha1.ReasonClassKeepsOff, v1alpha1.ReasonVolumeKept, v1alpha1.ReasonSuspended,
		v1alpha1.ReasonNamespaceConflict, v1alpha1.ReasonNamespaceTerminating, v1alpha1.ReasonNamespaceRefused, v1alpha1.ReasonNamespaceNotAdmitted, v1alpha1.ReasonNamespaceReserved,
	}, reason)
}
