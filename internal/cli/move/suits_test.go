package move

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestEnough(t *testing.T) {
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
		want string
	}{
		"enough":              {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "20Gi", "")}, ""},
		"too little capacity": {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "5Gi", "")}, "only up to 5Gi, but the copy needs 10Gi"},
		"the maximum volume size takes precedence": {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "1Gi", "1Ti")}, ""},
		"capacity of another member":               {[]storagev1.CSIStorageCapacity{capacity("fast", "one", "20Gi", "")}, "has no capacity for StorageClass \"fast\""},
		"capacity of another class":                {[]storagev1.CSIStorageCapacity{capacity("slow", "two", "20Gi", "")}, "has no capacity"},
		"no capacity objects":                      {nil, "lacks StorageClass \"gp3\""},
		"a capacity object without values":         {[]storagev1.CSIStorageCapacity{capacity("fast", "two", "", "")}, "has no capacity"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkCapacitySuffices(tc.all, "fast", "gp3", "cluster39", node, resource.MustParse("10Gi"))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
