package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A node suits a volume without a Pod if the member's scheduler could select it for any Pod.
func TestNodesForVolume(t *testing.T) {
	node := func(name, zone string, change ...func(*corev1.Node)) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		for _, c := range change {
			c(&n)
		}
		return n
	}
	nodes := []corev1.Node{
		node("a1", "a"), node("b1", "b"),
		node("away", "a", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }),
		node("cordoned", "a", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		node("control-plane", "a", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} }),
	}
	capacity := func(zone, total, largest string) storagev1.CSIStorageCapacity {
		c := storagev1.CSIStorageCapacity{Capacity: ptr.To(resource.MustParse(total)), NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: zone}}}
		if largest != "" {
			c.MaximumVolumeSize = ptr.To(resource.MustParse(largest))
		}
		return c
	}
	inZoneB := []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{"b"}}}}}
	for name, tc := range map[string]struct {
		topologies []corev1.TopologySelectorTerm
		capacities []storagev1.CSIStorageCapacity
		want       []string
	}{
		"the driver publishes no capacity":         {nil, nil, []string{"a1", "b1"}},
		"the class allows one zone":                {inZoneB, nil, []string{"b1"}},
		"one zone has enough capacity":             {nil, []storagev1.CSIStorageCapacity{capacity("a", "1Gi", ""), capacity("b", "10Gi", "")}, []string{"b1"}},
		"the largest possible volume is too small": {nil, []storagev1.CSIStorageCapacity{capacity("a", "10Gi", "1Gi"), capacity("b", "10Gi", "5Gi")}, []string{"b1"}},
		"the allowed zone has too little":          {inZoneB, []storagev1.CSIStorageCapacity{capacity("a", "10Gi", ""), capacity("b", "1Gi", "")}, nil},
		"a capacity is for no node":                {nil, []storagev1.CSIStorageCapacity{{Capacity: ptr.To(resource.MustParse("10Gi"))}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := NodesForVolume(&storagev1.StorageClass{AllowedTopologies: tc.topologies}, ptr.To(resource.MustParse("5Gi")), nodes, tc.capacities)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
