package capacity

import (
	"math"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// room is how much a member can hold of a class, in bytes: the largest volume that
// can be created there, and the most that is free in one place.
type room struct{ largest, free int64 }

// unlimited is the capacity of a member that does not report how much it has.
var unlimited = room{math.MaxInt64, math.MaxInt64}

// roomIn is the capacity in the segments of a member's storage, by the
// CSIStorageCapacities of one class: the most of any one of them, since a volume
// has to fit into one. Without any, the driver does not say, and there is capacity for
// anything. As for the scheduler, the largest volume is what the driver says it is,
// or else what is free, and what has no topology, or reports neither, has no capacity
// (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding, capacitySufficient).
func roomIn(segments []storagev1.CSIStorageCapacity) room {
	if len(segments) == 0 {
		return unlimited
	}
	var r room
	for i := range segments {
		s := &segments[i]
		if s.NodeTopology == nil {
			continue
		}
		largest := s.MaximumVolumeSize
		if largest == nil {
			largest = s.Capacity
		}
		r.largest = max(r.largest, bytes(largest))
		r.free = max(r.free, bytes(s.Capacity))
	}
	return r
}

// within is the capacity when more than a limit is known to fail.
func (r room) within(limit *resource.Quantity) room {
	if limit == nil {
		return r
	}
	return room{min(r.largest, bytes(limit)), min(r.free, bytes(limit))}
}

func bytes(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return max(0, q.Value())
}
