package capacity

import (
	"math"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func quantity(s string) *resource.Quantity {
	if s == "" {
		return nil
	}
	q := resource.MustParse(s)
	return &q
}

// segment returns a CSIStorageCapacity with the given Capacity and MaximumVolumeSize.
func segment(free, largest string) storagev1.CSIStorageCapacity {
	return storagev1.CSIStorageCapacity{NodeTopology: &metav1.LabelSelector{}, Capacity: quantity(free), MaximumVolumeSize: quantity(largest)}
}

func nowhere(s storagev1.CSIStorageCapacity) storagev1.CSIStorageCapacity {
	s.NodeTopology = nil
	return s
}

func TestAvailable(t *testing.T) {
	const gi = 1 << 30
	for name, tc := range map[string]struct {
		segments []storagev1.CSIStorageCapacity
		limit    string
		want     availableCapacity
	}{
		"no segments":                                 {nil, "", unlimitedCapacity},
		"no segments, and a size was rejected":        {nil, "10Gi", availableCapacity{10 * gi, 10 * gi}},
		"one segment":                                 {[]storagev1.CSIStorageCapacity{segment("5Gi", "")}, "", availableCapacity{5 * gi, 5 * gi}},
		"MaximumVolumeSize is smaller than Capacity":  {[]storagev1.CSIStorageCapacity{segment("5Gi", "2Gi")}, "", availableCapacity{2 * gi, 5 * gi}},
		"MaximumVolumeSize is larger than Capacity":   {[]storagev1.CSIStorageCapacity{segment("5Gi", "8Gi")}, "", availableCapacity{8 * gi, 5 * gi}},
		"only MaximumVolumeSize is reported":          {[]storagev1.CSIStorageCapacity{segment("", "2Gi")}, "", availableCapacity{2 * gi, 2 * gi}},
		"segments are not added up":                   {[]storagev1.CSIStorageCapacity{segment("5Gi", ""), segment("3Gi", "")}, "", availableCapacity{5 * gi, 5 * gi}},
		"each value is the maximum over all segments": {[]storagev1.CSIStorageCapacity{segment("5Gi", "1Gi"), segment("3Gi", "2Gi")}, "", availableCapacity{2 * gi, 5 * gi}},
		"a full segment":                              {[]storagev1.CSIStorageCapacity{segment("0", "")}, "", availableCapacity{}},
		"a full segment and a free one":               {[]storagev1.CSIStorageCapacity{segment("0", ""), segment("1Gi", "")}, "", availableCapacity{gi, gi}},
		"a segment without values":                    {[]storagev1.CSIStorageCapacity{segment("", "")}, "", availableCapacity{}},
		"a segment without a topology":                {[]storagev1.CSIStorageCapacity{nowhere(segment("5Gi", ""))}, "", availableCapacity{}},
		"negative capacity":                           {[]storagev1.CSIStorageCapacity{segment("-5Gi", "")}, "", availableCapacity{}},
		"a capacity that exceeds an int64":            {[]storagev1.CSIStorageCapacity{segment("8Ei", "")}, "", availableCapacity{math.MaxInt64, math.MaxInt64}},
		"a limit above the capacity":                  {[]storagev1.CSIStorageCapacity{segment("5Gi", "")}, "10Gi", availableCapacity{5 * gi, 5 * gi}},
		"a limit below the capacity":                  {[]storagev1.CSIStorageCapacity{segment("5Gi", "4Gi")}, "1Gi", availableCapacity{gi, gi}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := availableInSegments(tc.segments).cappedByLimit(quantity(tc.limit)); got != tc.want {
				t.Errorf("capacity %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestPromisesTooMuch(t *testing.T) {
	for name, tc := range map[string]struct {
		limit string
		want  bool
	}{
		"no limit":                             {"", false},
		"the published size exceeds the limit": {"1Gi", true},
		"the published size is the limit":      {"5Gi", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(func(o *observed) {
				o.segments = []storagev1.CSIStorageCapacity{segment("5Gi", "")}
				o.capacity = desiredCapacity(*o)
				o.limit = quantity(tc.limit)
			})
			if got := o.publishesTooMuch(); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
