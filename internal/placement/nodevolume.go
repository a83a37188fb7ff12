package placement

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/xylem-io/xylem/internal/nodes"
)

// NodesForVolume returns the names of a member's nodes on which a volume of a class can be provisioned,
// as the member's scheduler determines it for a Pod without requirements
// (k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding, hasEnoughCapacity). capacities are
// those of the class. If there are none, its driver does not publish any.
func NodesForVolume(class *storagev1.StorageClass, size *resource.Quantity, list []corev1.Node, capacities []storagev1.CSIStorageCapacity) []string {
	var suitable []string
	for i := range list {
		n := &list[i]
		if nodes.IsUsable(n) && classAllowsNode(class, n) &&
			(len(capacities) == 0 || slices.ContainsFunc(capacities, func(c storagev1.CSIStorageCapacity) bool { return capacitySuffices(c, size, n) })) {
			suitable = append(suitable, n.Name)
		}
	}
	return suitable
}

func capacitySuffices(c storagev1.CSIStorageCapacity, size *resource.Quantity, node *corev1.Node) bool {
	limit := cmp.Or(c.MaximumVolumeSize, c.Capacity)
	reaches, err := metav1.LabelSelectorAsSelector(c.NodeTopology) // a nil selector matches nothing
	return limit != nil && limit.Cmp(*size) >= 0 && err == nil && reaches.Matches(labels.Set(node.Labels))
}
