package volume

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/mirror/pvc"
)

// StampedLeafVolume returns the leaf PV with the stamp of its leaf claim's root, policy Retain, and
// annotations with its original policy and its tenant, or nil if it already has them.
func StampedLeafVolume(s *Observed) *corev1.PersistentVolume {
	origin := s.Origin
	if s.Holder != nil {
		origin = s.HolderOrigin
	}
	return changedVolume(s.Leaf, func(after *corev1.PersistentVolume) { applyStamp(s, after, origin) })
}

func applyStamp(s *Observed, after *corev1.PersistentVolume, origin mirror.Origin) {
	if after.Annotations[v1alpha1.AnnotationReclaimPolicy] == "" {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationReclaimPolicy, string(s.Leaf.Spec.PersistentVolumeReclaimPolicy))
	}
	if s.Root != nil && s.Tenant != "" {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationNamespaceUID, string(s.Tenant))
	}
	origin.StampLeaf(after)
	setRetainPolicy(after)
}

// RetainedLeafVolume returns the leaf PV with policy Retain, or nil if it already has that policy.
func RetainedLeafVolume(s *Observed) *corev1.PersistentVolume {
	return changedVolume(s.Leaf, setRetainPolicy)
}

func setRetainPolicy(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// SecuredLeafVolume returns a leaf PV that no host PV represents, with policy Retain and, if one of Xylem's
// leaf claims uses it, the stamp. It returns nil if no change is needed, or if the leaf PV does not
// belong to this host.
func SecuredLeafVolume(s *Observed) *corev1.PersistentVolume {
	switch {
	case s.HeldByLeafClaim():
		return StampedLeafVolume(s)
	case s.LeafStamped:
		return RetainedLeafVolume(s)
	}
	return nil
}

// TakenLeafVolume returns the leaf PV with the stamp of the admin's host PV, policy Retain, and a record
// of its policy in the member. The same patch reserves an Available leaf PV, so that no claim in
// the member is bound to it. The leaf PV is then Released, like any volume whose host PV is free.
func TakenLeafVolume(s *Observed) *corev1.PersistentVolume {
	return changedVolume(s.Leaf, func(after *corev1.PersistentVolume) {
		applyStamp(s, after, hostpv.OriginForImport(s.Host, s.Member.HostID))
		if after.Spec.ClaimRef == nil {
			after.Spec.ClaimRef = hostpv.ReservingClaimRef(s.Host)
		}
	})
}

// RepointedLeafVolume returns the leaf PV with policy Retain and with its current leaf claim in claimRef.
// One update changes both, so that the leaf PV is never Available.
func RepointedLeafVolume(s *Observed) *corev1.PersistentVolume {
	return changedVolume(s.Leaf, func(after *corev1.PersistentVolume) {
		applyStamp(s, after, s.Origin)
		after.Spec.ClaimRef = &corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim",
			Namespace: s.LeafClaim.Namespace, Name: s.LeafClaim.Name, UID: s.LeafClaim.UID,
		}
	})
}

// HostVolumeOutdated reports whether the host PV must match the leaf PV and differs from it.
func HostVolumeOutdated(s *Observed) bool { return mustMatchLeaf(s) && CurrentHostVolume(s) != nil }

// HostVolumeUnguarded reports whether the host PV lacks Xylem's finalizer, or lacks policy Retain although the
// volume must be retained.
func HostVolumeUnguarded(s *Observed) bool {
	return mustMatchLeaf(s) && (!s.HasXylemFinalizer() || mustOverridePolicy(s))
}

// mustMatchLeaf reports whether the host PV must match the leaf PV.
func mustMatchLeaf(s *Observed) bool {
	return s.Host != nil && s.Leaf != nil && s.LeafStamped && s.Host.DeletionTimestamp == nil
}

// MustRetainForLostClaim reports whether the host PV must get policy Retain because of LastClaimMayBeLost, before the
// holder and the stamp, which show that another claim used the volume, are removed.
func MustRetainForLostClaim(s *Observed) bool {
	return s.LastClaimMayBeLost && s.Host != nil && s.Leaf != nil && s.LeafStamped && (s.Host.DeletionTimestamp == nil || s.HasXylemFinalizer()) && mustOverridePolicy(s)
}

// mustOverridePolicy reports whether the volume must be retained, but the host PV's policy is different: the
// member retains the volume, or the host may have lost the claim that used it last.
func mustOverridePolicy(s *Observed) bool {
	return (s.OriginalReclaimPolicy() != corev1.PersistentVolumeReclaimDelete || s.LastClaimMayBeLost) && s.Host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain
}

// CurrentHostVolume returns the host PV with the leaf PV's current capacity and volume attributes class,
// the registration's current name, Xylem's finalizer, and policy Retain if the volume must be
// retained. It returns nil if the host PV already has them.
func CurrentHostVolume(s *Observed) *corev1.PersistentVolume {
	return changedVolume(s.Host, func(after *corev1.PersistentVolume) {
		setOwnFields(s, after)
		change := hostpv.VolumeDriftOf(s.Host, s.Leaf, hostNameOfLeafClass(s))
		if change.Capacity != nil {
			after.Spec.Capacity = change.Capacity
		}
		if change.VolumeAttributesClassName != nil {
			after.Spec.VolumeAttributesClassName = change.VolumeAttributesClassName
		}
	})
}

// setOwnFields sets the fields of a host PV that Xylem determines, not the member.
func setOwnFields(s *Observed, after *corev1.PersistentVolume) {
	controllerutil.AddFinalizer(after, v1alpha1.FinalizerLeafVolume)
	metav1.SetMetaDataLabel(&after.ObjectMeta, v1alpha1.LabelCluster, s.Member.Registration)
	delete(after.Annotations, v1alpha1.AnnotationClusterGone)
	if !mustOverridePolicy(s) {
		return
	}
	setRetainPolicy(after)
	if last, _ := s.LastOtherOrigin(); s.LastClaimMayBeLost {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationLastClaimLost, string(last.UID))
	}
}

// OnlyFollowsMember reports whether CurrentHostVolume differs from the host PV only in fields that the member's
// admin can change at any time: the capacity and the volume attributes class.
func OnlyFollowsMember(s *Observed) bool {
	return changedVolume(s.Host, func(after *corev1.PersistentVolume) { setOwnFields(s, after) }) == nil
}

// hostNameOfLeafClass returns the host's name for the leaf PV's VolumeAttributesClass, or "" if the
// leaf PV has none, or if its leaf claim, which records that name, does not exist.
func hostNameOfLeafClass(s *Observed) string {
	if !s.HeldByLeafClaim() {
		return ""
	}
	return pvc.HostAttributesClass(s.LeafClaim, ptr.Deref(s.Leaf.Spec.VolumeAttributesClassName, ""))
}

// changedVolume returns a copy of a PV with a change, or nil if the change has no effect, which is the
// usual case. Of the fields that change may write to, it copies only labels, annotations and
// finalizers. change must replace anything else that the PV points to, and never modify it.
func changedVolume(pv *corev1.PersistentVolume, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	copied, _ := scratchPool.Get().(*scratchVolume)
	defer scratchPool.Put(copied)
	defer func() { copied.PersistentVolume = corev1.PersistentVolume{} }()
	after := &copied.PersistentVolume
	*after = *pv
	after.Labels, after.Annotations = copyMapInto(copied.labels, pv.Labels), copyMapInto(copied.annotations, pv.Annotations)
	if pv.Finalizers != nil {
		copied.finalizers = append(copied.finalizers[:0], pv.Finalizers...)
		after.Finalizers = copied.finalizers
	}
	change(after)
	if maps.Equal(pv.Labels, after.Labels) && maps.Equal(pv.Annotations, after.Annotations) && slices.Equal(pv.Finalizers, after.Finalizers) {
		after.Labels, after.Annotations, after.Finalizers = pv.Labels, pv.Annotations, pv.Finalizers
	}
	// reflect.DeepEqual is fast because it skips equal pointers.
	if reflect.DeepEqual(pv, after) || equality.Semantic.DeepEqual(pv, after) {
		return nil
	}
	return after.DeepCopy()
}

// scratchPool contains the copies that changed has compared. It compares each volume several times after a start.
var scratchPool = sync.Pool{New: func() any { return &scratchVolume{labels: map[string]string{}, annotations: map[string]string{}} }}

type scratchVolume struct {
	corev1.PersistentVolume
	labels, annotations map[string]string
	finalizers          []string
}

// copyMapInto replaces the content of a map by a copy of another one.
func copyMapInto(to, from map[string]string) map[string]string {
	if from == nil {
		return nil
	}
	clear(to)
	maps.Copy(to, from)
	return to
}
