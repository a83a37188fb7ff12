package capacity

import (
	"cmp"
	"math"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// availableCapacity is a member's capacity for a class, in bytes: the largest volume that it can provision,
// and the free space in its largest segment.
type availableCapacity struct{ largest, free int64 }

// unlimitedCapacity is the capacity of a member that reports none.
var unlimitedCapacity = availableCapacity{math.MaxInt64, math.MaxInt64}

// availableInSegments returns a member's capacity according to the CSIStorageCapacities of one class, each
// of which describes a segment. A volume must fit into one segment, so each value is the maximum
// over all segments. Without segments, the capacity is unlimited. As in the scheduler,
// MaximumVolumeSize takes precedence over Capacity. A segment that reports only MaximumVolumeSize
// has at least that much free space. A segment without a topology or without both values has no
// capacity (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding, capacitySufficient).
func availableInSegments(segments []storagev1.CSIStorageCapacity) availableCapacity {
	if len(segments) == 0 {
		return unlimitedCapacity
	}
	var r availableCapacity
	for i := range segments {
		s := &segments[i]
		if s.NodeTopology == nil {
			continue
		}
		largest := cmp.Or(s.MaximumVolumeSize, s.Capacity)
		r.largest = max(r.largest, quantityBytes(largest))
		r.free = max(r.free, quantityBytes(cmp.Or(s.Capacity, largest)))
	}
	return r
}

// cappedByLimit caps the capacity at limit, above which volumes are known to fail. A nil limit changes
// nothing.
func (r availableCapacity) cappedByLimit(limit *resource.Quantity) availableCapacity {
	if limit == nil {
		return r
	}
	return availableCapacity{min(r.largest, quantityBytes(limit)), min(r.free, quantityBytes(limit))}
}

func quantityBytes(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return max(0, q.Value())
}
