package capacity

import (
	"math"
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// estimateTolerance is the factor by which an estimate may be wrong before it is written again. The other
// members' capacities change with each volume.
const estimateTolerance = 1.25

// estimateFreeBytes returns the free capacity to publish if the member reports none for the class: the
// median of the other members' capacities. It returns false if the member reports its capacity, or
// if no other member does. From Kubernetes 1.37, the scheduler prefers the node with the lowest
// share of requested capacity, so a member that counts as unlimited would get all claims.
func (o observed) estimateFreeBytes() (int64, bool) {
	if len(o.segments) > 0 {
		return 0, false
	}
	var reported []int64
	for i := range o.others {
		other := &o.others[i]
		if other.Labels[v1alpha1.LabelClusterID] != o.member.ClusterID && !isEstimated(other) && quantityBytes(other.Capacity) != math.MaxInt64 {
			reported = append(reported, quantityBytes(other.Capacity))
		}
	}
	if len(reported) == 0 {
		return 0, false
	}
	slices.Sort(reported)
	median := reported[(len(reported)-1)/2] // the lower one of two
	if published := o.capacity; published != nil && isEstimated(published) && isWithinTolerance(quantityBytes(published.Capacity), median) {
		return quantityBytes(published.Capacity), true
	}
	return median, true
}

func isEstimated(capacity *storagev1.CSIStorageCapacity) bool {
	return capacity.Annotations[v1alpha1.AnnotationCapacityEstimated] != ""
}

// isWithinTolerance reports whether two sizes differ at most by the factor tolerance.
func isWithinTolerance(a, b int64) bool {
	return float64(max(a, b)) <= estimateTolerance*float64(min(a, b))
}
