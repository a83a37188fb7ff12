package capacity

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
)

// observed is the input of decide for a host class and a member.
type observed struct {
	member    mirror.Member
	namespace string
	// registration is the member's registration, or nil if it does not exist.
	registration *v1alpha1.ClusterRegistration
	// hostClass is the class in the host, or nil. leaf reports whether the member has the class to
	// which hostClass is mapped.
	hostClass       *storagev1.StorageClass
	leafClassExists bool
	// segments are the CSIStorageCapacities that the member's driver created for the class. limit is
	// the largest size that may still fit, or nil if the driver has rejected no size.
	segments []storagev1.CSIStorageCapacity
	limit    *resource.Quantity
	// others are the host's CSIStorageCapacities for the class, of all members. They are read only if
	// there are no segments.
	others []storagev1.CSIStorageCapacity
	// capacity is the existing CSIStorageCapacity in the host, or nil.
	capacity *storagev1.CSIStorageCapacity
}

// writeAction is the step to take. For create and patch, decision.after is the object to write.
type writeAction int

const (
	actionNone writeAction = iota
	actionCreate
	actionPatch
	actionDelete
)

type decision struct {
	action writeAction
	after  *storagev1.CSIStorageCapacity
}

func decideCapacity(o observed) decision {
	if !o.memberOffersClass() {
		if o.capacity == nil {
			return decision{}
		}
		return decision{action: actionDelete}
	}
	want := desiredCapacity(o)
	if o.capacity == nil {
		return decision{actionCreate, want}
	}
	if !equality.Semantic.DeepEqual(o.capacity.NodeTopology, want.NodeTopology) || o.capacity.StorageClassName != want.StorageClassName {
		return decision{action: actionDelete} // these fields are immutable; the watch enqueues the class again to re-create the object
	}
	after := o.capacity.DeepCopy()
	after.Capacity, after.MaximumVolumeSize = want.Capacity, want.MaximumVolumeSize
	after.OwnerReferences = want.OwnerReferences
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	maps.Copy(after.Labels, want.Labels)
	delete(after.Annotations, v1alpha1.AnnotationCapacityEstimated)
	if len(want.Annotations) > 0 {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationCapacityEstimated, want.Annotations[v1alpha1.AnnotationCapacityEstimated])
	}
	if equality.Semantic.DeepEqual(o.capacity, after) {
		return decision{}
	}
	return decision{actionPatch, after}
}

// memberOffersClass reports whether the member can provision volumes for claims of the class.
func (o observed) memberOffersClass() bool {
	return o.registration != nil && o.registration.DeletionTimestamp == nil && hostpv.IsMirrorClass(o.hostClass) && o.leafClassExists
}

// publishesTooMuch reports whether the existing object allows a size that is known to fail.
func (o observed) publishesTooMuch() bool {
	return o.limit != nil && o.capacity != nil && quantityBytes(o.capacity.MaximumVolumeSize) > quantityBytes(o.limit)
}

// desiredCapacity returns the desired object.
func desiredCapacity(o observed) *storagev1.CSIStorageCapacity {
	// The scheduler's filter uses MaximumVolumeSize. Its scoring uses Capacity, and dereferences it
	// without a nil check (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding).
	has := availableInSegments(o.segments)
	if free, ok := o.estimateFreeBytes(); ok {
		has.free = free
	}
	has = has.cappedByLimit(o.limit)
	var annotations map[string]string
	if len(o.segments) == 0 && has.free != unlimitedCapacity.free {
		annotations = map[string]string{v1alpha1.AnnotationCapacityEstimated: "true"}
	}
	return &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.namespace, Name: capacityNameOf(o.hostClass.Name, o.member.ClusterID),
			Labels: map[string]string{
				v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
				v1alpha1.LabelCluster:   o.member.Registration,
				v1alpha1.LabelClusterID: o.member.ClusterID,
			},
			Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "ClusterRegistration", Name: o.registration.Name, UID: o.registration.UID,
			}},
		},
		StorageClassName:  o.hostClass.Name,
		NodeTopology:      &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelClusterID: o.member.ClusterID}},
		Capacity:          resource.NewQuantity(has.free, resource.BinarySI),
		MaximumVolumeSize: resource.NewQuantity(has.largest, resource.BinarySI),
	}
}

// capacityNameOf returns the object's name for a host class and a member. A class name can have the maximum
// length of an object name, so the object's name contains a hash of both. Use the labels or the
// printed columns to find an object.
func capacityNameOf(class, clusterID string) string {
	sum := sha256.Sum256([]byte(class + "/" + clusterID)) // a class name cannot contain a slash
	return "xylem-" + hex.EncodeToString(sum[:10])
}
