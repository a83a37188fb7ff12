package virtualnode

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/nodes"
)

func virtualNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-cluster38", UID: "node", Labels: map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelVirtualNode: "true",
		v1alpha1.LabelCluster: "cluster38", v1alpha1.LabelClusterID: "3f0c",
	}}}
}

// standingCSINode returns the CSINode that Xylem creates, after applying the changes.
func standingCSINode(change ...func(*storagev1.CSINode)) *storagev1.CSINode {
	csiNode := decideCSINode(virtualNode(), nil).after
	for _, f := range change {
		f(csiNode)
	}
	return csiNode
}

func TestDecideCSINode(t *testing.T) {
	other := storagev1.CSINodeDriver{Name: "ebs.csi.aws.com", NodeID: "i-0", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](3)}}
	for name, tc := range map[string]struct {
		csiNode *storagev1.CSINode
		want    *storagev1.CSINode
		reason  string
	}{
		"the CSINode does not exist": {want: &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{
				Name:            "kosmos-cluster38",
				Labels:          map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelCluster: "cluster38", v1alpha1.LabelClusterID: "3f0c"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "kosmos-cluster38", UID: "node"}},
			},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
				{Name: "csi.xylem.io", NodeID: "kosmos-cluster38"}, {Name: "mock.csi.virtual-kubelet.io", NodeID: "kosmos-cluster38"},
			}},
		}},
		"the CSINode is up to date":                           {csiNode: standingCSINode()},
		"the CSINode has another driver's entry, which stays": {csiNode: standingCSINode(func(c *storagev1.CSINode) { c.Spec.Drivers = append(c.Spec.Drivers, other) })},
		"an admin set a limit, which stays": {csiNode: standingCSINode(func(c *storagev1.CSINode) {
			c.Spec.Drivers[0].Allocatable = &storagev1.VolumeNodeResources{Count: ptr.To[int32](3)}
		})},
		"one of Xylem's entries is missing": {
			csiNode: standingCSINode(func(c *storagev1.CSINode) { c.Spec.Drivers = []storagev1.CSINodeDriver{other, c.Spec.Drivers[1]} }),
			want: standingCSINode(func(c *storagev1.CSINode) {
				c.Spec.Drivers = []storagev1.CSINodeDriver{other, c.Spec.Drivers[1], c.Spec.Drivers[0]}
			}),
		},
		"the CSINode belongs to an earlier Node": {csiNode: standingCSINode(func(c *storagev1.CSINode) { c.OwnerReferences[0].UID = "earlier" }), want: standingCSINode()},
		"the CSINode belongs to an earlier registration": {
			csiNode: standingCSINode(func(c *storagev1.CSINode) { c.Labels[v1alpha1.LabelCluster] = "earlier" }), want: standingCSINode(),
		},
		"the CSINode has a foreign owner reference, which stays": {csiNode: standingCSINode(func(c *storagev1.CSINode) {
			c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{Kind: "ConfigMap", Name: "x", UID: "x"})
		})},
		"the CSINode is foreign": {csiNode: standingCSINode(func(c *storagev1.CSINode) { c.Labels = nil }), reason: v1alpha1.ReasonCSINodeNameTaken},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.csiNode.DeepCopy()
			got := decideCSINode(virtualNode(), tc.csiNode)
			if diff := cmp.Diff(tc.want, got.after); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if (got.problem != nil) != (tc.reason != "") || got.problem != nil && got.problem.reason != tc.reason {
				t.Errorf("problem is %v, want reason %q", got.problem, tc.reason)
			}
			if got.after != nil {
				if next := decideCSINode(virtualNode(), got.after); next.after != nil {
					t.Errorf("decision is %v after the write, want nothing", next)
				}
			}
			if diff := cmp.Diff(before, tc.csiNode); diff != "" {
				t.Errorf("decide changed the observed object:\n%s", diff)
			}
		})
	}
}

func TestDecideCSINodeOfDeletedNode(t *testing.T) {
	leaving := virtualNode()
	leaving.DeletionTimestamp = &metav1.Time{}
	if got := decideCSINode(leaving, nil); got.after != nil || got.problem != nil {
		t.Errorf("decision is %v, want nothing", got)
	}
}

func TestWithCSINodeCondition(t *testing.T) {
	first, later := metav1.Unix(100, 0), metav1.Unix(200, 0)
	taken := &csiNodeProblem{v1alpha1.ReasonCSINodeNameTaken, "taken"}
	node := withCSINodeCondition(virtualNode(), taken, first)
	for name, tc := range map[string]struct {
		node    *corev1.Node
		problem *csiNodeProblem
		changes bool
		since   metav1.Time
	}{
		"there is no problem":               {node: virtualNode()},
		"the problem is unchanged":          {node: node, problem: taken},
		"the reason of the problem changes": {node: node, problem: csiNodeNotWritten(node.Name, errors.New("forbidden")), changes: true, since: first},
		"the problem is new":                {node: virtualNode(), problem: taken, changes: true, since: later},
		"the problem is resolved":           {node: node, changes: true},
	} {
		t.Run(name, func(t *testing.T) {
			after := withCSINodeCondition(tc.node, tc.problem, later)
			if (after != nil) != tc.changes {
				t.Fatalf("condition changes: %t, want %t", after != nil, tc.changes)
			}
			if after == nil {
				return
			}
			got := nodes.FindCondition(after, v1alpha1.NodeCSINode)
			if (got != nil) != (tc.problem != nil) {
				t.Fatalf("condition is %v, want a condition: %t", got, tc.problem != nil)
			}
			if got != nil && (got.Status != corev1.ConditionFalse || got.Reason != tc.problem.reason || got.Message != tc.problem.message || got.LastTransitionTime != tc.since) {
				t.Errorf("condition is %v, want status False, problem %v, and since %v", got, *tc.problem, tc.since)
			}
		})
	}
}
