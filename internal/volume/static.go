package volume

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// ImportingHostVolume returns the admin's host PV that the decision depends on: the one that the root is bound
// to, or otherwise the first.
func (s *Observed) ImportingHostVolume() *corev1.PersistentVolume {
	for i := range s.Imports {
		if s.Root != nil && s.Root.Spec.VolumeName == s.Imports[i].Name {
			return &s.Imports[i]
		}
	}
	if len(s.Imports) == 0 {
		return nil
	}
	return &s.Imports[0]
}

// RootBoundToImport reports whether the root is bound to an admin's unrecorded host PV.
func (s *Observed) RootBoundToImport() bool {
	asks := s.ImportingHostVolume()
	return asks != nil && s.Host == nil && s.Root != nil && s.Root.Spec.VolumeName == asks.Name
}

// ImportNotTaken reports whether an admin's host PV represents a leaf PV that nothing in this host has
// taken yet: it has neither the host PV's stamp nor a claim's stamp, and no leaf claim of this host
// names it.
func (s *Observed) ImportNotTaken() bool {
	return s.Host != nil && s.Leaf != nil && hostpv.IsImportedVolume(s.Host) && !s.NamedByLeafClaim() && s.Holder == nil &&
		(!s.LeafStamped || s.Stamp.Root.Namespace == "" && !s.StampedForHostVolume())
}

// StampedForHostVolume reports whether the leaf PV has the stamp of the host PV itself, because no claim
// has used it yet.
func (s *Observed) StampedForHostVolume() bool {
	return s.Host != nil && s.LeafStamped && s.Stamp.Root.Namespace == "" && s.Stamp.UID == s.Host.UID
}

// AdoptedNeverUsed reports whether the leaf PV was adopted and no claim in the host has used it, so that
// its stamp names a host PV.
func (s *Observed) AdoptedNeverUsed() bool {
	return s.Leaf != nil && s.LeafStamped && s.Stamp.Root.Namespace == ""
}

// KeptNeverUsed reports whether a never-used volume is kept although both policies are Delete.
func (s *Observed) KeptNeverUsed() bool {
	return s.AdoptedNeverUsed() && s.Host.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && s.OriginalReclaimPolicy() == corev1.PersistentVolumeReclaimDelete
}

// UnstampedClaimRef returns the member's claim in the claimRef of an unstamped leaf PV, or an empty
// name.
func (s *Observed) UnstampedClaimRef() (types.NamespacedName, types.UID) {
	if ref := s.Leaf.Spec.ClaimRef; ref != nil && !s.LeafStamped {
		return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, ref.UID
	}
	return types.NamespacedName{}, ""
}
