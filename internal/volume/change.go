package volume

import (
	"maps"
	"reflect"
	"slices"

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

// StampedLeaf is the leaf PV with the stamp of its leaf claim's root, with policy Retain, and
// with notes of the policy that the member had given it, and of whose it is; nil if it is so
// already.
func (s *Observed) StampedLeaf() *corev1.PersistentVolume {
	origin := s.Origin
	if s.Holder != nil {
		origin = s.HolderOrigin
	}
	return changed(s.Leaf, func(after *corev1.PersistentVolume) { s.stamp(after, origin) })
}

func (s *Observed) stamp(after *corev1.PersistentVolume, origin mirror.Origin) {
	if after.Annotations[v1alpha1.AnnotationReclaimPolicy] == "" {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationReclaimPolicy, string(s.Leaf.Spec.PersistentVolumeReclaimPolicy))
	}
	if s.Root != nil && s.Tenant != "" {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationNamespaceUID, string(s.Tenant))
	}
	origin.Stamp(after)
	retain(after)
}

// RetainedLeaf is the leaf PV with policy Retain; nil if it has it.
func (s *Observed) RetainedLeaf() *corev1.PersistentVolume { return changed(s.Leaf, retain) }

func retain(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// KeptLeaf is a leaf PV that no host PV represents, with policy Retain, and with the stamp if a
// leaf claim of ours holds it; nil if it is so already, or is none of ours.
func (s *Observed) KeptLeaf() *corev1.PersistentVolume {
	switch {
	case s.Held():
		return s.StampedLeaf()
	case s.Stamped:
		return s.RetainedLeaf()
	}
	return nil
}

// RepointedLeaf is the leaf PV, held, for its present leaf claim: in one update, so that it is
// never Available.
func (s *Observed) RepointedLeaf() *corev1.PersistentVolume {
	return changed(s.Leaf, func(after *corev1.PersistentVolume) {
		s.stamp(after, s.Origin)
		after.Spec.ClaimRef = &corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim",
			Namespace: s.Claim.Namespace, Name: s.Claim.Name, UID: s.Claim.UID,
		}
	})
}

// Outdated reports whether the host PV is not as the leaf PV is, and is to be.
func (s *Observed) Outdated() bool { return s.followed() && s.CurrentHost() != nil }

// Unguarded reports whether the host PV lacks our finalizer, or Retain where the member retains.
func (s *Observed) Unguarded() bool { return s.followed() && (!s.HasFinalizer() || s.overrules()) }

// followed reports whether the host PV is to be as the leaf PV is.
func (s *Observed) followed() bool {
	return s.Host != nil && s.Leaf != nil && s.Stamped && !deleting(s.Host)
}

// overrules reports whether the member retains what the host PV would not.
func (s *Observed) overrules() bool {
	return s.Policy() != corev1.PersistentVolumeReclaimDelete && s.Host.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain
}

// CurrentHost is the host PV as the leaf PV is now: capacity and volume attributes class; with
// the registration's present name; our finalizer; and Retain where the member retains. Nil if
// it is so already.
func (s *Observed) CurrentHost() *corev1.PersistentVolume {
	return changed(s.Host, func(after *corev1.PersistentVolume) {
		controllerutil.AddFinalizer(after, v1alpha1.FinalizerLeafVolume)
		metav1.SetMetaDataLabel(&after.ObjectMeta, v1alpha1.LabelCluster, s.Member.Registration)
		delete(after.Annotations, v1alpha1.AnnotationClusterGone)
		if s.overrules() {
			retain(after)
		}
		change := hostpv.Drift(s.Host, s.Leaf, s.attributesClass())
		if change.Capacity != nil {
			after.Spec.Capacity = change.Capacity
		}
		if change.VolumeAttributesClassName != nil {
			after.Spec.VolumeAttributesClassName = change.VolumeAttributesClassName
		}
	})
}

// attributesClass is the host's name of the leaf PV's VolumeAttributesClass; empty if it has
// none, or if its leaf claim, which has the name, is gone.
func (s *Observed) attributesClass() string {
	if !s.Held() {
		return ""
	}
	return pvc.HostAttributesClass(s.Claim, ptr.Deref(s.Leaf.Spec.VolumeAttributesClassName, ""))
}

// changed is a copy of a PV with a change made to it; nil if that changes nothing. As a
// rule it does not: of what is looked at, labels, annotations and finalizers are copied
// alone. Anything else that the PV points to is replaced by a change, never written to.
func changed(pv *corev1.PersistentVolume, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	after := *pv
	after.Labels, after.Annotations, after.Finalizers = maps.Clone(pv.Labels), maps.Clone(pv.Annotations), slices.Clone(pv.Finalizers)
	change(&after)
	// The former looks at nothing twice that both of them point to.
	if reflect.DeepEqual(pv, &after) || equality.Semantic.DeepEqual(pv, &after) {
		return nil
	}
	return after.DeepCopy()
}
