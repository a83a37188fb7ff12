package index

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// The largest volume of a class in member "two" is read as the scheduler reads it.
func TestLargestIn(t *testing.T) {
	capacity := func(class, cluster, free, limit string) storagev1.CSIStorageCapacity {
		c := storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelClusterID: cluster}}, StorageClassName: class}
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
		want string // empty if the member does not offer the class
	}{
		"free capacity": {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "20Gi", "")}, "20Gi"},
		"the maximum volume size takes precedence": {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "1Gi", "1Ti")}, "1Ti"},
		"capacity of another member":               {[]storagev1.CSIStorageCapacity{capacity("fast", "one", "20Gi", "")}, ""},
		"capacity of another class":                {[]storagev1.CSIStorageCapacity{capacity("slow", "two", "20Gi", "")}, ""},
		"no capacity objects":                      {nil, ""},
		"a capacity object without values":         {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "", "")}, ""},
	} {
		got, offered := largestIn(tc.all)["two"]["fast"]
		if offered != (tc.want != "") || offered && got.String() != tc.want {
			t.Errorf("%s: %s, offered %t, want %q", name, &got, offered, tc.want)
		}
	}
}
