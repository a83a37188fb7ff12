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
	"github.com/xylem-io/xylem/internal/mirror/hostclass"
)

// observed is all that is known of a host class and a member.
type observed struct {
	member    mirror.Member
	namespace string
	// registration of the member, nil if it is gone.
	registration *v1alpha1.ClusterRegistration
	// hostClass of that name, nil if there is none; leaf: the member has its class.
	hostClass *storagev1.StorageClass
	leaf      bool
	// segments are what the member's driver says of its class, if anything; limit is
	// the most that it did not refuse, nil if nothing is known to fail.
	segments []storagev1.CSIStorageCapacity
	limit    *resource.Quantity
	// capacity that is published, nil if none is.
	capacity *storagev1.CSIStorageCapacity
}

// act is what to do; create and patch go with an object.
type act int

const (
	nothing act = iota
	create
	patch
	remove
)

type decision struct {
	do    act
	after *storagev1.CSIStorageCapacity
}

func decide(o observed) decision {
	if !o.offered() {
		if o.capacity == nil {
			return decision{}
		}
		return decision{do: remove}
	}
	want := published(o)
	if o.capacity == nil {
		return decision{create, want}
	}
	if !equality.Semantic.DeepEqual(o.capacity.NodeTopology, want.NodeTopology) || o.capacity.StorageClassName != want.StorageClassName {
		return decision{do: remove} // these cannot be changed; the watch brings us back to re-create it
	}
	after := o.capacity.DeepCopy()
	after.Capacity, after.MaximumVolumeSize = want.Capacity, want.MaximumVolumeSize
	after.OwnerReferences = want.OwnerReferences
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	maps.Copy(after.Labels, want.Labels)
	if equality.Semantic.DeepEqual(o.capacity, after) {
		return decision{}
	}
	return decision{patch, after}
}

// offered: claims of the class can have their volumes in the member.
func (o observed) offered() bool {
	return o.registration != nil && o.registration.DeletionTimestamp == nil && hostclass.Mirrors(o.hostClass) && o.leaf
}

// promisesTooMuch: what is published is known to fail, and cannot wait.
func (o observed) promisesTooMuch() bool {
	return o.limit != nil && o.capacity != nil && bytes(o.capacity.MaximumVolumeSize) > bytes(o.limit)
}

// published is the object as it is to be.
func published(o observed) *storagev1.CSIStorageCapacity {
	// The scheduler's filter reads MaximumVolumeSize, its scoring (alpha) reads
	// Capacity without looking whether it is there
	// (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding).
	has := roomIn(o.segments).within(o.limit)
	return &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.namespace, Name: nameOf(o.hostClass.Name, o.member.ClusterID),
			Labels: map[string]string{
				v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
				v1alpha1.LabelCluster:   o.member.Registration,
				v1alpha1.LabelClusterID: o.member.ClusterID,
			},
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

// nameOf is the name for a host class and a member. The names of classes are
// as long as names can be, so both are hashed; who looks for one has the labels
// and the columns.
func nameOf(class, clusterID string) string {
	sum := sha256.Sum256([]byte(class + "/" + clusterID)) // a class name has no slash
	return "xylem-" + hex.EncodeToString(sum[:10])
}
