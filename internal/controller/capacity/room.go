package capacity

import (
	"cmp"
	"math"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// available is the capacity of a member for a class in bytes: the largest volume that it can
// provision, and the most free space in one segment.
type available struct{ largest, free int64 }

// unlimited is the capacity of a member that does not report any.
var unlimited = available{math.MaxInt64, math.MaxInt64}

// availableIn returns the capacity of a member according to the CSIStorageCapacities of one class.
// A volume must fit into one segment, so each value is the maximum of all segments. Without
// any segment, the capacity is unlimited. As in the scheduler, MaximumVolumeSize takes
// precedence over Capacity. A segment that reports only MaximumVolumeSize has at least that much
// free space. A segment without a topology or without both values has no
// capacity (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding,
// capacitySufficient).
func availableIn(segments []storagev1.CSIStorageCapacity) available {
	if len(segments) == 0 {
		return unlimited
	}
	var r available
	for i := range segments {
		s := &segments[i]
		if s.NodeTopology == nil {
			continue
		}
		largest := cmp.Or(s.MaximumVolumeSize, s.Capacity)
		r.largest = max(r.largest, bytes(largest))
		r.free = max(r.free, bytes(cmp.Or(s.Capacity, largest)))
	}
	return r
}

// within returns the capacity up to a limit, above which volumes are known to fail.
func (r available) within(limit *resource.Quantity) available {
	if limit == nil {
		return r
	}
	return available{min(r.largest, bytes(limit)), min(r.free, bytes(limit))}
}

func bytes(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return max(0, q.Value())
}
