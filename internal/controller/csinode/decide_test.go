package csinode

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/nodes"
)

func virtual() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kosmos-cluster38", UID: "node", Labels: map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelVirtualNode: "true",
		v1alpha1.LabelCluster: "cluster38", v1alpha1.LabelClusterID: "3f0c",
	}}}
}

// standing returns the CSINode that Xylem creates, after applying the changes.
func standing(change ...func(*storagev1.CSINode)) *storagev1.CSINode {
	csiNode := decide(observed{node: virtual()}).after
	for _, f := range change {
		f(csiNode)
	}
	return csiNode
}

func TestDecide(t *testing.T) {
	other := storagev1.CSINodeDriver{Name: "ebs.csi.aws.com", NodeID: "i-0", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](3)}}
	for name, tc := range map[string]struct {
		csiNode *storagev1.CSINode
		do      act
		want    *storagev1.CSINode
		reason  string
	}{
		"the CSINode does not exist": {do: create, want: &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{
				Name:            "kosmos-cluster38",
				Labels:          map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelCluster: "cluster38", v1alpha1.LabelClusterID: "3f0c"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "kosmos-cluster38", UID: "node"}},
			},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
				{Name: "csi.xylem.io", NodeID: "kosmos-cluster38"}, {Name: "mock.csi.virtual-kubelet.io", NodeID: "kosmos-cluster38"},
			}},
		}},
		"the CSINode is up to date":                           {csiNode: standing()},
		"the CSINode has another driver's entry, which stays": {csiNode: standing(func(c *storagev1.CSINode) { c.Spec.Drivers = append(c.Spec.Drivers, other) })},
		"an admin set a limit, which stays": {csiNode: standing(func(c *storagev1.CSINode) {
			c.Spec.Drivers[0].Allocatable = &storagev1.VolumeNodeResources{Count: ptr.To[int32](3)}
		})},
		"one of Xylem's entries is missing": {
			csiNode: standing(func(c *storagev1.CSINode) { c.Spec.Drivers = []storagev1.CSINodeDriver{other, c.Spec.Drivers[1]} }),
			do:      patch, want: standing(func(c *storagev1.CSINode) {
				c.Spec.Drivers = []storagev1.CSINodeDriver{other, c.Spec.Drivers[1], c.Spec.Drivers[0]}
			}),
		},
		"the CSINode belongs to an earlier Node": {csiNode: standing(func(c *storagev1.CSINode) { c.OwnerReferences[0].UID = "earlier" }), do: patch, want: standing()},
		"the CSINode belongs to an earlier registration": {
			csiNode: standing(func(c *storagev1.CSINode) { c.Labels[v1alpha1.LabelCluster] = "earlier" }), do: patch, want: standing(),
		},
		"the CSINode has a foreign owner reference, which stays": {csiNode: standing(func(c *storagev1.CSINode) {
			c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{Kind: "ConfigMap", Name: "x", UID: "x"})
		})},
		"the CSINode is foreign": {csiNode: standing(func(c *storagev1.CSINode) { c.Labels = nil }), reason: v1alpha1.ReasonCSINodeNameTaken},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.csiNode.DeepCopy()
			got := decide(observed{node: virtual(), csiNode: tc.csiNode, recheck: time.Minute})
			if got.do != tc.do {
				t.Errorf("decision is %d, want %d", got.do, tc.do)
			}
			if diff := cmp.Diff(tc.want, got.after); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if (got.problem != nil) != (tc.reason != "") || got.problem != nil && got.problem.reason != tc.reason {
				t.Errorf("problem is %v, want reason %q", got.problem, tc.reason)
			}
			if want := tc.reason != ""; (got.again == time.Minute) != want {
				t.Errorf("the next check is after %s, want one in a minute: %v", got.again, want)
			}
			if got.after != nil {
				if next := decide(observed{node: virtual(), csiNode: got.after}); next.do != nothing {
					t.Errorf("decision is %d after the write, want nothing", next.do)
				}
			}
			if diff := cmp.Diff(before, tc.csiNode); diff != "" {
				t.Errorf("decide changed the observed object:\n%s", diff)
			}
		})
	}
}

func TestDecideWithoutNode(t *testing.T) {
	leaving := virtual()
	leaving.DeletionTimestamp = &metav1.Time{}
	for name, node := range map[string]*corev1.Node{"the virtual node does not exist": nil, "the virtual node is being deleted": leaving} {
		if got := decide(observed{node: node}); got.do != nothing || got.problem != nil {
			t.Errorf("%s: decision is %v, want nothing", name, got)
		}
	}
}

func TestCondition(t *testing.T) {
	first, later := metav1.Unix(100, 0), metav1.Unix(200, 0)
	taken := &problem{v1alpha1.ReasonCSINodeNameTaken, "taken"}
	node := withCondition(virtual(), taken, first)
	for name, tc := range map[string]struct {
		node    *corev1.Node
		problem *problem
		changes bool
		since   metav1.Time
	}{
		"there is no problem":               {node: virtual()},
		"the problem is unchanged":          {node: node, problem: taken},
		"the reason of the problem changes": {node: node, problem: notWritten(node.Name, errors.New("forbidden")), changes: true, since: first},
		"the problem is new":                {node: virtual(), problem: taken, changes: true, since: later},
		"the problem is resolved":           {node: node, changes: true},
	} {
		t.Run(name, func(t *testing.T) {
			after := withCondition(tc.node, tc.problem, later)
			if (after != nil) != tc.changes {
				t.Fatalf("condition changes: %t, want %t", after != nil, tc.changes)
			}
			if after == nil {
				return
			}
			got := nodes.Condition(after, v1alpha1.NodeCSINode)
			if (got != nil) != (tc.problem != nil) {
				t.Fatalf("condition is %v, want a condition: %t", got, tc.problem != nil)
			}
			if got != nil && (got.Status != corev1.ConditionFalse || got.Reason != tc.problem.reason || got.Message != tc.problem.message || got.LastTransitionTime != tc.since) {
				t.Errorf("condition is %v, want status False, problem %v, and since %v", got, *tc.problem, tc.since)
			}
		})
	}
}
