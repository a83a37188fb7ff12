package capacity

import (
	"math"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// other returns the CSIStorageCapacity that is published in the host for another member.
func other(cluster, free string, change ...func(*storagev1.CSIStorageCapacity)) storagev1.CSIStorageCapacity {
	c := segment(free, "")
	c.Labels = map[string]string{v1alpha1.LabelClusterID: cluster}
	for _, f := range change {
		f(&c)
	}
	return c
}

// beside sets the capacities that other members report.
func beside(free ...string) func(*observed) {
	return func(o *observed) {
		o.others = nil
		for _, f := range free {
			o.others = append(o.others, other("a91e", f))
		}
	}
}

// keeping sets the existing object to the desired one for the observation so far.
func keeping(o *observed) { o.capacity = desiredCapacity(*o) }

func asEstimate(c *storagev1.CSIStorageCapacity) {
	c.Annotations = map[string]string{v1alpha1.AnnotationCapacityEstimated: "true"}
}

func asUnlimited(c *storagev1.CSIStorageCapacity) {
	c.Capacity = resource.NewQuantity(math.MaxInt64, resource.BinarySI)
}

func TestEstimate(t *testing.T) {
	const gi = 1 << 30
	for name, tc := range map[string]struct {
		observed observed
		// free and largest are the published capacities. estimated is whether they are marked as an
		// estimate.
		free, largest int64
		estimated     bool
	}{
		"there is no other member":          {seen(), math.MaxInt64, math.MaxInt64, false},
		"one other member reports capacity": {seen(beside("5Gi")), 5 * gi, math.MaxInt64, true},
		"the median of three members":       {seen(beside("1Gi", "900Gi", "8Gi")), 8 * gi, math.MaxInt64, true},
		"the lower median of four members":  {seen(beside("1Gi", "900Gi", "8Gi", "9Gi")), 8 * gi, math.MaxInt64, true},
		"the only other member is full":     {seen(beside("0")), 0, math.MaxInt64, true},
		"the other members report no capacity either": {seen(func(o *observed) {
			o.others = []storagev1.CSIStorageCapacity{other("a91e", "", asUnlimited), other("77b2", "5Gi", asEstimate)}
		}), math.MaxInt64, math.MaxInt64, false},
		"the member's own object does not count": {seen(func(o *observed) {
			o.others = []storagev1.CSIStorageCapacity{other("3f0c", "5Gi")}
		}), math.MaxInt64, math.MaxInt64, false},
		"the member's driver reports capacity": {seen(beside("5Gi"), func(o *observed) {
			o.segments = []storagev1.CSIStorageCapacity{segment("1Gi", "")}
		}), gi, gi, false},
		"a size was rejected, and no member reports any": {seen(func(o *observed) { o.limit = quantity("2Gi") }), 2 * gi, 2 * gi, true},
		"a size was rejected":                            {seen(beside("5Gi"), func(o *observed) { o.limit = quantity("2Gi") }), 2 * gi, 2 * gi, true},
		"a size above the estimate was rejected":         {seen(beside("5Gi"), func(o *observed) { o.limit = quantity("7Gi") }), 5 * gi, 7 * gi, true},
		"a small change: the estimate stays":             {seen(beside("5Gi"), keeping, beside("4Gi")), 5 * gi, math.MaxInt64, true},
		"a large change: the estimate is updated":        {seen(beside("5Gi"), keeping, beside("3Gi")), 3 * gi, math.MaxInt64, true},
		"many small changes: the estimate is updated":    {seen(beside("8Gi"), keeping, beside("7Gi"), keeping, beside("6Gi"), keeping), 6 * gi, math.MaxInt64, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := desiredCapacity(tc.observed)
			if got.Capacity.Value() != tc.free || got.MaximumVolumeSize.Value() != tc.largest || isEstimated(got) != tc.estimated {
				t.Errorf("capacity %d, maximum volume size %d, estimated %t; want %d, %d, %t",
					got.Capacity.Value(), got.MaximumVolumeSize.Value(), isEstimated(got), tc.free, tc.largest, tc.estimated)
			}
		})
	}
}
