package volume

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
)

// LeafClaim returns the root's leaf claim, or why the root cannot have one.
func LeafClaim(s *Observed) (*corev1.PersistentVolumeClaim, *mirror.Refusal) {
	answer := s.LeafClaimAnswer()
	if answer.Refusal != nil {
		return nil, answer.Refusal
	}
	class := answer.Class
	if s.Name != "" {
		class = s.Leaf.Spec.StorageClassName
	}
	leaf, err := pvc.TranslateClaim(rootToCreateFrom(s), &class, s.Member)
	if err != nil {
		refusal := &mirror.Refusal{}
		errors.As(err, &refusal)
		return nil, refusal
	}
	if s.Name == "" {
		return leaf, nil
	}
	leaf = pvc.ClaimWithVolumeName(leaf, s.Name)
	// The member binds a claim to a PV only if both name the same VolumeAttributesClass, so the
	// leaf claim first gets the PV's. The root's class is applied later.
	if has := ptr.Deref(s.Leaf.Spec.VolumeAttributesClassName, ""); has != "" {
		leaf = pvc.ClaimWithAttributesClass(leaf, has, hostAttributesClass(s, has))
	}
	// A volume that must still grow is bound with its current size, and is expanded afterwards.
	if capacity := s.Leaf.Spec.Capacity[corev1.ResourceStorage]; leaf.Spec.Resources.Requests.Storage().Cmp(capacity) > 0 {
		leaf.Spec.Resources.Requests[corev1.ResourceStorage] = capacity
	}
	return leaf, nil
}

// rootToCreateFrom returns the root in the form that the leaf claim is created from. If the volume exists,
// it omits a data source in another namespace.
func rootToCreateFrom(s *Observed) *corev1.PersistentVolumeClaim {
	if source, has := mirror.DataSourceOf(s.Root); s.Name == "" || !has || source.Namespace == "" {
		return s.Root
	}
	root := s.Root.DeepCopy()
	root.Spec.DataSource, root.Spec.DataSourceRef = nil, nil
	return root
}

// hostAttributesClass returns the host's name for the VolumeAttributesClass of a volume in use, as
// the host PV records it. The host PV of an adopted volume was created for its new claim and has that
// claim's class, so the class that the earlier claim had keeps the member's name until Modify has applied the
// new one. A host PV that an admin freed for the claim is older than the claim.
func hostAttributesClass(s *Observed, member string) string {
	if s.Host == nil || s.StampedForOtherRoot() && !s.Host.CreationTimestamp.Before(&s.Root.CreationTimestamp) {
		return member
	}
	return ptr.Deref(s.Host.Spec.VolumeAttributesClassName, member)
}
