package lifecycle_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle"
	"github.com/xylem-io/xylem/internal/controller/rootpod/lifecycle/lifecycletest"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podspec"
	"github.com/xylem-io/xylem/internal/route"
)

func groupNode(group string) *corev1.Node {
	node := lifecycletest.VirtualNode()
	node.Name = v1alpha1.GroupNodeName(group, lifecycletest.MemberHere.NodeName)
	node.Labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedByValue
	node.Labels[corev1.LabelHostname], node.Labels[v1alpha1.LabelNodeGroup] = node.Name, group
	node.Annotations = map[string]string{v1alpha1.AnnotationNodeSelector: `{"matchExpressions":[{"key":"zone","operator":"In","values":["` + group + `"]}]}`}
	return node
}

// realNode is a node of the host that is named like the node of a group.
func realNode(group string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.GroupNodeName(group, lifecycletest.MemberHere.NodeName)}}
}

// inGroup binds the Pod and its claim to the node of a group.
func inGroup(node *corev1.Node, name string) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) {
		lifecycletest.BoundToMember(o)
		o.Root.Spec.NodeName, o.Node = v1alpha1.GroupNodeName(name, lifecycletest.MemberHere.NodeName), node
	}
}

// chosenGroup makes the scheduler choose the node of a group for an unbound Pod and its claim.
func chosenGroup(node *corev1.Node, nominated, selected string) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) {
		o.Node = node
		o.Root.Status.NominatedNodeName = v1alpha1.GroupNodeName(nominated, lifecycletest.MemberHere.NodeName)
		o.Claims[0].Root.Annotations[route.AnnSelectedNode] = v1alpha1.GroupNodeName(selected, lifecycletest.MemberHere.NodeName)
	}
}

// leafIn adds a leaf that was created for the node of a group.
func leafIn(group string, others ...*corev1.Node) func(*lifecycle.Observed) {
	return func(o *lifecycle.Observed) {
		lifecycletest.WithLeafPod(o)
		term, _ := podspec.GroupSelectorOf(groupNode(group))
		podspec.RequireGroup(o.Leaf, term)
		o.OtherNodes = map[string]*corev1.Node{}
		for _, node := range others {
			o.OtherNodes[node.Name] = node
		}
		lifecycletest.WithPushedCondition(lifecycletest.MemberHere, corev1.ConditionTrue)(o)
	}
}

func TestPodsOnNodesOfGroups(t *testing.T) {
	without := func(key string) *corev1.Node {
		node := groupNode("a")
		delete(node.Annotations, key)
		delete(node.Labels, key)
		return node
	}
	deleting := func(o *lifecycle.Observed) {
		o.Root.DeletionTimestamp = &lifecycletest.Now
		o.Root.Status.Phase = corev1.PodFailed
	}
	for name, c := range map[string]struct {
		change []func(*lifecycle.Observed)
		want   lifecycle.Decision // only its type is compared
		waits  bool               // reports ReasonSelectedNode
	}{
		"bound":                                   {change: []func(*lifecycle.Observed){inGroup(groupNode("a"), "a")}, want: lifecycle.CreateLeaf{}},
		"the Node is missing":                     {change: []func(*lifecycle.Observed){inGroup(nil, "a")}, want: lifecycle.Nothing{}, waits: true},
		"the Node lacks the selector":             {change: []func(*lifecycle.Observed){inGroup(without(v1alpha1.AnnotationNodeSelector), "a")}, want: lifecycle.Nothing{}, waits: true},
		"a node of the host":                      {change: []func(*lifecycle.Observed){inGroup(realNode("a"), "a")}, want: lifecycle.Nothing{}},
		"a node with another cluster ID":          {change: []func(*lifecycle.Observed){inGroup(without(v1alpha1.LabelClusterID), "a")}, want: lifecycle.Nothing{}},
		"deleted, on a node of the host":          {change: []func(*lifecycle.Observed){inGroup(realNode("a"), "a"), deleting}, want: lifecycle.Nothing{}},
		"deleted, on the node of a group":         {change: []func(*lifecycle.Observed){inGroup(groupNode("a"), "a"), deleting}, want: lifecycle.FinishRoot{}},
		"deleted, without Node and leaf":          {change: []func(*lifecycle.Observed){inGroup(nil, "a"), deleting}, want: lifecycle.Nothing{}},
		"deleted, without Node, had a leaf":       {change: []func(*lifecycle.Observed){inGroup(nil, "a"), deleting, lifecycletest.WithPushedCondition(lifecycletest.MemberHere, corev1.ConditionTrue)}, want: lifecycle.FinishRoot{}},
		"deleted, without Node, has a leaf":       {change: []func(*lifecycle.Observed){inGroup(nil, "a"), deleting, leafIn("a")}, want: lifecycle.RemoveLeaf{}},
		"a leaf, then a node of the host":         {change: []func(*lifecycle.Observed){inGroup(realNode("a"), "a"), leafIn("a", realNode("a"))}, want: lifecycle.RemoveLeaf{}},
		"chosen":                                  {change: []func(*lifecycle.Observed){chosenGroup(groupNode("a"), "a", "a")}, want: lifecycle.CreateLeaf{}},
		"chosen, a node of the host":              {change: []func(*lifecycle.Observed){chosenGroup(realNode("a"), "a", "a")}, want: lifecycle.Nothing{}},
		"chosen, without the selector":            {change: []func(*lifecycle.Observed){chosenGroup(without(v1alpha1.AnnotationNodeSelector), "a", "a")}, want: lifecycle.Nothing{}, waits: true},
		"claim and Pod in different groups":       {change: []func(*lifecycle.Observed){chosenGroup(groupNode("a"), "a", "b")}, want: lifecycle.Nothing{}},
		"a live read names another group":         {change: []func(*lifecycle.Observed){chosenGroup(groupNode("a"), "b", "b")}, want: lifecycle.Nothing{}},
		"a leaf in the group":                     {change: []func(*lifecycle.Observed){chosenGroup(groupNode("a"), "a", "a"), leafIn("a", groupNode("a"))}, want: lifecycle.Nothing{}},
		"a leaf, and the group's Node is missing": {change: []func(*lifecycle.Observed){chosenGroup(nil, "a", "a"), leafIn("a")}, want: lifecycle.Nothing{}},
		"a leaf in another group":                 {change: []func(*lifecycle.Observed){chosenGroup(groupNode("b"), "b", "b"), leafIn("a", groupNode("b"))}, want: lifecycle.RemoveLeaf{}},
		"a leaf with a volume elsewhere":          {change: []func(*lifecycle.Observed){chosenGroup(groupNode("b"), "b", "b"), leafIn("a", groupNode("b")), func(o *lifecycle.Observed) { o.Claims[0].Leaf.Spec.VolumeName = "pvc-1" }}, want: lifecycle.Nothing{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lifecycle.NextDecision(lifecycletest.ObservedPod(c.change...))
			if reflect.TypeOf(got) != reflect.TypeOf(c.want) {
				t.Fatalf("decision: %#v, want %T", got, c.want)
			}
			if d, ok := got.(lifecycle.Nothing); ok && (d.Problem != nil) != c.waits {
				t.Errorf("problem: %v", d.Problem)
			} else if ok && c.waits && d.Problem.Reason != v1alpha1.ReasonSelectedNode {
				t.Errorf("reason: %s", d.Problem.Reason)
			}
		})
	}
}

func TestLeafRequiresItsGroup(t *testing.T) {
	group, _ := podspec.GroupSelectorOf(groupNode("a"))
	byHostname := func(o *lifecycle.Observed) {
		amd := corev1.NodeSelectorRequirement{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}}
		host := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{o.Node.Name}}
		o.Node.Labels[corev1.LabelArchStable] = "amd64"
		o.Root.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{host, amd}}}}}}
	}
	for name, c := range map[string]struct {
		change   func(*lifecycle.Observed)
		required int // expressions in the only required term
	}{
		"without an affinity":   {change: func(*lifecycle.Observed) {}, required: 1},
		"with one for the node": {change: byHostname, required: 2},
		"with a volume that the group does not reach": {change: func(o *lifecycle.Observed) {
			o.Claims[0] = lifecycletest.BoundClaim(o.Claims[0].Name, lifecycletest.MemberHere)
			o.Claims[0].BoundHere = true
			o.Claims[0].Volume.Spec.NodeAffinity = mirror.NodeAffinityToTopologies(lifecycletest.MemberHere.ClusterID, []string{v1alpha1.LabelTopologyPrefix + "b"})
		}},
		"with a volume of unknown groups": {change: func(o *lifecycle.Observed) { o.Claims[0].GroupsUnknown = true }},
	} {
		t.Run(name, func(t *testing.T) {
			d, created := lifecycle.NextDecision(lifecycletest.ObservedPod(inGroup(groupNode("a"), "a"), c.change)).(lifecycle.CreateLeaf)
			if !created || !podspec.IsKeptToGroup(d.Leaf, group) || d.Leaf.Spec.NodeName != "" {
				t.Fatalf("the leaf is not kept to its group: %+v", d.Leaf)
			}
			got := 0
			if required := d.Leaf.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
				got = len(required.NodeSelectorTerms[0].MatchExpressions)
			}
			if got != c.required {
				t.Errorf("%d required expressions, want %d: %+v", got, c.required, d.Leaf.Spec.Affinity.NodeAffinity)
			}
		})
	}
}
