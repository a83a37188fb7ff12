package move

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestLargestOn(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelClusterID: "two"}}}
	capacity := func(class, cluster, free, limit string) storagev1.CSIStorageCapacity {
		c := storagev1.CSIStorageCapacity{StorageClassName: class, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelClusterID: cluster}}}
		if free != "" {
			c.Capacity = ptr.To(resource.MustParse(free))
		}
		if limit != "" {
			c.MaximumVolumeSize = ptr.To(resource.MustParse(limit))
		}
		return c
	}
	for name, tc := range map[string]struct {
		all  []storagev1.CSIStorageCapacity
		want string // empty if the class is not offered
	}{
		"one capacity object":                      {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "20Gi", "")}, "20Gi"},
		"two capacity objects: the lower counts":   {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "20Gi", ""), capacity("fast", "two", "5Gi", "")}, "5Gi"},
		"the maximum volume size takes precedence": {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "1Gi", "1Ti")}, "1Ti"},
		"capacity of another member":               {[]storagev1.CSIStorageCapacity{capacity("fast", "one", "20Gi", "")}, ""},
		"capacity of another class":                {[]storagev1.CSIStorageCapacity{capacity("slow", "two", "20Gi", "")}, ""},
		"no capacity objects":                      {nil, ""},
		"a capacity object without values":         {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "", "")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, offered := largestOn(node, tc.all)["fast"]
			if offered != (tc.want != "") || offered && got.String() != tc.want {
				t.Errorf("got %s, offered: %t, want %q", &got, offered, tc.want)
			}
		})
	}
}
