package volume

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// WhyNotOwnedByRoot explains why the volume does not belong to the root, or returns "" (I3).
func (s *Observed) WhyNotOwnedByRoot() string {
	if s.BelongsToRoot() {
		return ""
	}
	if placed := s.PlacedClusterID(); placed != "" && placed != s.Member.ClusterID {
		if s.PlacedRegistration != "" {
			return fmt.Sprintf("the claim is placed in member %q", s.PlacedRegistration)
		}
		return fmt.Sprintf("the claim is placed in another cluster (ID %q)", placed)
	}
	name := s.Root.Spec.VolumeName
	if name != "" && !s.AwaitsPromisedDisk() && (s.Host == nil && s.HostVolumeName(s.Root) != name || s.Host != nil && name != s.Host.Name) {
		return "the claim is bound to volume " + strconv.Quote(name)
	}
	return ""
}

// RequestedBySuccessor reports whether the root's successor requests the volume that the root's leaf claim is
// still bound to. The leaf claim and the volume must have the same origin.
func (s *Observed) RequestedBySuccessor() bool {
	return s.Successor != nil && s.Host == nil && len(s.EarlierHosts) == 0 && s.HeldByLeafClaim() && s.LeafStamped && s.Stamp.UID == s.Origin.UID &&
		hostpv.RequestsEarlierVolume(s.Successor, s.Leaf, s.Member) && s.HostVolumeName(s.Successor) == s.Successor.Spec.VolumeName
}

// PromiseSuperseded reports whether a promise that is not assigned to a member will never be used by its
// claim. If the claim was deleted, the host's PV controller releases the promise instead.
func (s *Observed) PromiseSuperseded() bool {
	claim := s.RootOrSuccessor()
	return s.Host.Spec.ClaimRef != nil && (claim != nil || s.HostClaimRefUID() == "") && !PromiseStillWanted(s.Host, claim) && (!isTerminating(s.Host) || s.HasXylemFinalizer())
}

// RootOrSuccessor returns the claim that the host PV refers to by name, whether or not it is the root.
func (s *Observed) RootOrSuccessor() *corev1.PersistentVolumeClaim {
	if s.Root != nil {
		return s.Root
	}
	return s.Successor
}

// PromiseStillWanted reports whether the claim that a promise refers to by name (nil if it does not exist) is,
// or should still be, bound to the promise. While a promise is being created, its claim may be
// bound to another volume: one of the same class that an admin freed. The host's PV controller then
// releases the promise or, with policy Retain, removes the UID from its claimRef. The promise would
// then be bound to the next claim with that name.
func PromiseStillWanted(promise *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	uid := promise.Spec.ClaimRef.UID
	switch {
	case claim == nil, uid != "" && uid != claim.UID:
		return false
	case claim.Spec.VolumeName != "":
		return claim.Spec.VolumeName == promise.Name
	}
	return uid != "" || promise.Name == hostpv.PromiseName(claim.UID)
}
