package member

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What room is made out from is kept, and that there is a topology at all.
func TestReduceCapacity(t *testing.T) {
	size := resource.MustParse("1Gi")
	seen := func(topology *metav1.LabelSelector) *storagev1.CSIStorageCapacity {
		return &storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system", Name: "csisc-1", UID: "uid", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
				OwnerReferences: []metav1.OwnerReference{{Name: "provisioner"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "csi"}},
			},
			StorageClassName: "fast", Capacity: &size, MaximumVolumeSize: &size, NodeTopology: topology,
		}
	}
	kept := &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: "kube-system", Name: "csisc-1", UID: "uid", ResourceVersion: "7"},
		StorageClassName: "fast", Capacity: &size, MaximumVolumeSize: &size,
	}
	everywhere := kept.DeepCopy()
	everywhere.NodeTopology = &metav1.LabelSelector{}
	for name, c := range map[string]struct {
		topology *metav1.LabelSelector
		want     *storagev1.CSIStorageCapacity
	}{
		"of some nodes": {&metav1.LabelSelector{MatchLabels: map[string]string{"rack": "1"}}, everywhere},
		"of all nodes":  {&metav1.LabelSelector{}, everywhere},
		"of no node":    {nil, kept},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reduceCapacity(seen(c.topology))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
