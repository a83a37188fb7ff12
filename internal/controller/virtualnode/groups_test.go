package virtualnode

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/nodes"
)

const zoneKey = corev1.LabelTopologyZone

func labelled(pairs ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Labels = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			n.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func reports(kind corev1.NodeConditionType) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue})
	}
}

func selecting(name string, matchLabels ...string) v1alpha1.NodeGroup {
	n := &corev1.Node{}
	labelled(matchLabels...)(n)
	return v1alpha1.NodeGroup{Name: name, Selector: &metav1.LabelSelector{MatchLabels: n.Labels}}
}

func forEachValue(key string) v1alpha1.NodeGroup {
	return v1alpha1.NodeGroup{ForEach: &v1alpha1.ForEachNode{LabelKey: key}}
}

func forEachNode() v1alpha1.NodeGroup {
	return v1alpha1.NodeGroup{ForEach: &v1alpha1.ForEachNode{Node: true}}
}

// grouped divides nodes, and returns what is remarkable about each group, and the problem.
func grouped(rules []v1alpha1.NodeGroup, topologies []hostpv.Topology, list ...*corev1.Node) ([]string, string) {
	g := grouping{rules: rules, memberNode: "kosmos-m", topologies: topologies}
	groups, problem := g.groupNodes(list)
	var found []string
	for _, group := range groups {
		text := fmt.Sprintf("%s nodes=%d", group.Name, group.Summary.Ready)
		for _, key := range slices.Sorted(maps.Keys(group.Labels)) {
			text += " " + key + "=" + group.Labels[key]
		}
		if group.Cordoned {
			text += " cordoned"
		}
		for _, more := range append(slices.Clone(group.Topologies), fmt.Sprint(group.Pressures)) {
			text += " " + more
		}
		found = append(found, strings.TrimSuffix(text, " []"))
	}
	return found, problem
}

func TestGroupNodes(t *testing.T) {
	a1, a2, b1 := leafNode("a1", labelled(zoneKey, "a")), leafNode("a2", labelled(zoneKey, "a", "pool", "gpu")), leafNode("b1", labelled(zoneKey, "b"))
	for name, tc := range map[string]struct {
		rules   []v1alpha1.NodeGroup
		nodes   []*corev1.Node
		want    []string
		problem string
	}{
		"by name": {[]v1alpha1.NodeGroup{selecting("left", zoneKey, "a")}, []*corev1.Node{a1, a2}, []string{"left nodes=2 " + zoneKey + "=a"}, ""},
		"for each value": {[]v1alpha1.NodeGroup{forEachValue(zoneKey)}, []*corev1.Node{b1, a1, a2},
			[]string{"a nodes=2 " + zoneKey + "=a", "b nodes=1 " + zoneKey + "=b"}, ""},
		"for each node": {[]v1alpha1.NodeGroup{forEachNode()}, []*corev1.Node{b1, a1}, []string{"a1 nodes=1 " + zoneKey + "=a", "b1 nodes=1 " + zoneKey + "=b"}, ""},
		"the first rule wins": {[]v1alpha1.NodeGroup{selecting("gpu", "pool", "gpu"), forEachNode()}, []*corev1.Node{a1, a2},
			[]string{"gpu nodes=1 pool=gpu " + zoneKey + "=a", "a1 nodes=1 " + zoneKey + "=a"}, ""},
		"rules overlap": {[]v1alpha1.NodeGroup{selecting("gpu", "pool", "gpu"), forEachValue(zoneKey)}, []*corev1.Node{a1, a2},
			[]string{"gpu nodes=1 pool=gpu " + zoneKey + "=a", "a nodes=1 " + zoneKey + "=a"}, "several rules match 1 node"},
		"a rule without nodes": {[]v1alpha1.NodeGroup{selecting("none", "pool", "x"), forEachNode()}, []*corev1.Node{a1},
			[]string{"a1 nodes=1 " + zoneKey + "=a"}, "spec.nodes[0] matches no node"},
		"a node without a rule": {[]v1alpha1.NodeGroup{selecting("gpu", "pool", "gpu")}, []*corev1.Node{a1, a2, b1},
			[]string{"gpu nodes=1 pool=gpu " + zoneKey + "=a"}, "matches 2 nodes of the member, which get no Pods: a1, b1"},
		"two rules form a group of the same name": {[]v1alpha1.NodeGroup{selecting("a1", zoneKey, "b"), forEachNode()}, []*corev1.Node{a1, b1},
			[]string{"a1 nodes=1 " + zoneKey + "=b"}, "groups of the same name. Only the first one has a virtual node: a1"},
		"an invalid selector": {[]v1alpha1.NodeGroup{{Name: "x", Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}}}, forEachNode()},
			[]*corev1.Node{a1}, []string{"a1 nodes=1 " + zoneKey + "=a"}, "spec.nodes[0].selector is invalid"},
		"zones differ": {[]v1alpha1.NodeGroup{selecting("all", "x", "y")}, []*corev1.Node{leafNode("p", labelled("x", "y", zoneKey, "a")), leafNode("q", labelled("x", "y"))},
			[]string{"all nodes=2 x=y"}, ""},
		"a label of Kubernetes": {[]v1alpha1.NodeGroup{forEachValue("node.kubernetes.io/instance-type")}, []*corev1.Node{leafNode("p", labelled("node.kubernetes.io/instance-type", "m5"))},
			[]string{"m5 nodes=1"}, ""},
		"a label of Xylem that a member forges": {[]v1alpha1.NodeGroup{forEachValue(v1alpha1.LabelClusterID)}, []*corev1.Node{leafNode("p", labelled(v1alpha1.LabelClusterID, "other"))},
			[]string{"other nodes=1"}, ""},
		"values that are not labels": {[]v1alpha1.NodeGroup{forEachValue(zoneKey)}, []*corev1.Node{leafNode("p", labelled(zoneKey, "a/b")), leafNode("q", labelled(zoneKey, ""))},
			nil, "no rule of spec.nodes matches 2 nodes"},
		"one of two nodes is cordoned and short of memory": {[]v1alpha1.NodeGroup{forEachValue(zoneKey)}, []*corev1.Node{a1, leafNode("a3", labelled(zoneKey, "a"), unschedulable, reports(corev1.NodeMemoryPressure))},
			[]string{"a nodes=2 " + zoneKey + "=a"}, ""},
		"all are cordoned and short of memory": {[]v1alpha1.NodeGroup{forEachNode()}, []*corev1.Node{leafNode("p", unschedulable, reports(corev1.NodeMemoryPressure))},
			[]string{"p nodes=1 cordoned [MemoryPressure]"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, problem := grouped(tc.rules, nil, tc.nodes...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if tc.problem == "" && problem != "" || !strings.Contains(problem, tc.problem) {
				t.Errorf("problem %q, want %q", problem, tc.problem)
			}
		})
	}
}

func TestGroupsShowTopologies(t *testing.T) {
	inZone := func(zone string) hostpv.Topology {
		return hostpv.Topology{Label: v1alpha1.LabelTopologyPrefix + zone, Term: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneKey, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}
	}
	got, _ := grouped([]v1alpha1.NodeGroup{selecting("all", "x", "y"), forEachNode()}, []hostpv.Topology{inZone("a"), inZone("b")},
		leafNode("p", labelled("x", "y", zoneKey, "a")), leafNode("q", labelled("x", "y", zoneKey, "b"), notReady), leafNode("r", labelled(zoneKey, "b")))
	want := []string{
		"all nodes=1 x=y xylem.io/topology-a xylem.io/topology-b",
		"r nodes=1 " + zoneKey + "=b xylem.io/topology-b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// Names of groups must be parts of node names, differ for different texts, and leave room for the member's node.
func TestGroupNames(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		"zone-a", "Zone-a", "zone.a", "zone_a", "-", "...", "ip-10-0-3-17.eu-west-1.compute.internal", strings.Repeat("n", 63), strings.Repeat("n", 62) + "m", "ö",
	} {
		name := groupNameOf(text, 22)
		if other, found := seen[name]; found {
			t.Errorf("%q and %q have the same name %q", text, other, name)
		}
		seen[name] = text
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > 22 {
			t.Errorf("the name of %q is %q: %v", text, name, problems)
		}
	}
	if seen["zone-a"] != "zone-a" {
		t.Error("a text that is a valid name does not keep it")
	}
}

func TestLimitOfGroups(t *testing.T) {
	var list []*corev1.Node
	for i := range v1alpha1.MaxNodesOfMember + 7 {
		list = append(list, leafNode(fmt.Sprintf("n%03d", i)))
	}
	got, problem := grouped([]v1alpha1.NodeGroup{forEachNode()}, nil, list...)
	if len(got) != v1alpha1.MaxNodesOfMember || !strings.Contains(problem, "form 507 groups") {
		t.Errorf("%d groups, problem %q", len(got), problem)
	}
}

// groupOf is the group of two nodes in a zone.
func groupOf(change ...func(*member.NodeGroup)) *member.NodeGroup {
	g := &member.NodeGroup{Name: "a", Labels: map[string]string{zoneKey: "a"}, Topologies: []string{v1alpha1.LabelTopologyPrefix + "a"}, Summary: *facts(),
		Selector: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}}
	for _, c := range change {
		c(g)
	}
	return g
}

func ofGroup(g *member.NodeGroup) func(*observed) {
	return func(o *observed) { o.name, o.group = "a.kosmos-cluster38", g }
}

func notKnown(o *observed) {
	o.group, o.state.Synced, o.state.NodeSummary, o.awaySince, o.memberReady = nil, false, nil, start, false
}

// rulesChanged means that the Link has not published the groups of the new rules.
func rulesChanged(o *observed) { o.group, o.memberReady = nil, true }
func lost(o *observed)         { o.group, o.lost = nil, true }

func cordoned(g *member.NodeGroup) { g.Cordoned = true }

func TestNodeOfGroup(t *testing.T) {
	node := newVirtualNode(seen(ofGroup(groupOf())))
	setNodeStatus(node, seen(ofGroup(groupOf())))
	node.UID = "node"
	with := func(change ...func(*corev1.Node)) func(*observed) {
		return func(o *observed) {
			o.node = node.DeepCopy()
			for _, c := range change {
				c(o.node)
			}
		}
	}
	admin := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	xylem := func(n *corev1.Node) { setMetadata(n, seen(ofGroup(groupOf(cordoned)))) }
	left := func(n *corev1.Node) { setMetadata(n, seen(ofGroup(groupOf()), lost)) }
	pods := func(o *observed) { o.pods = 1 }
	for name, tc := range map[string]struct {
		observed observed
		want     string
	}{
		"new":                         {seen(ofGroup(groupOf())), "create Ready=True"},
		"up to date":                  {seen(ofGroup(groupOf()), with()), "nothing"},
		"the group is not known":      {seen(ofGroup(nil), notKnown, with()), "nothing"},
		"the rules have just changed": {seen(ofGroup(nil), rulesChanged, with()), "nothing"},
		"the rules have just changed, with eviction":            {seen(ofGroup(nil), rulesChanged, evicting, with(func(n *corev1.Node) { setMetadata(n, seen(ofGroup(groupOf()), evicting)) })), "nothing"},
		"somebody deleted the Node, and the group is not known": {seen(ofGroup(nil), rulesChanged), "create Ready=True"},
		"the member is away":                                    {seen(ofGroup(nil), notKnown, away(v1alpha1.ReasonIdentityChanged), with()), "patch tainted"},
		"the group is cordoned":                                 {seen(ofGroup(groupOf(cordoned)), with()), "patch cordoned"},
		"the group is no longer cordoned":                       {seen(ofGroup(groupOf()), with(xylem)), "patch"},
		"an admin cordoned the Node":                            {seen(ofGroup(groupOf()), with(admin)), "nothing"},
		"cordoned, and the group is not known":                  {seen(ofGroup(nil), notKnown, with(xylem)), "nothing"},
		"the group is lost":                                     {seen(ofGroup(nil), lost, pods, with()), "patch cordoned"},
		"the group is lost, and Pods remain":                    {seen(ofGroup(nil), lost, pods, with(left)), "status Ready=True"},
		"the group has just been lost":                          {seen(ofGroup(nil), lost, with(left)), "status Ready=True"},
		"the group is lost, and no Pod is left":                 {seen(ofGroup(nil), lost, with(left), func(o *observed) { o.now = metav1.NewTime(start.Add(lostDelay)) }), "remove"},
		"the group is back":                                     {seen(ofGroup(groupOf()), with(left)), "patch"},
		"no node of the group is ready":                         {seen(ofGroup(groupOf(func(g *member.NodeGroup) { g.Summary.Ready, g.Summary.Nodes = 0, 0 })), with()), "patch tainted"},
		"a real node has the name": {seen(ofGroup(groupOf()), func(o *observed) {
			o.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a.kosmos-cluster38"}}
		}), "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(decideNode(tc.observed).do); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestNodeOfGroupShowsIt(t *testing.T) {
	o := seen(ofGroup(groupOf(func(g *member.NodeGroup) { g.Pressures = []corev1.NodeConditionType{corev1.NodeDiskPressure} })), func(o *observed) {
		o.registration.Spec.Node.Labels = map[string]string{"team": "x"}
	})
	node := newVirtualNode(o)
	setNodeStatus(node, o)
	if node.Name != "a.kosmos-cluster38" || node.Labels[corev1.LabelHostname] != node.Name || node.Labels[v1alpha1.LabelNodeGroup] != "a" ||
		node.Labels[zoneKey] != "a" || node.Labels["team"] != "x" {
		t.Errorf("node %q has the labels %v", node.Name, node.Labels)
	}
	if _, found := node.Labels[v1alpha1.LabelTopologyPrefix+"a"]; !found {
		t.Error("the Node does not show the topology")
	}
	want := `{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["a"]}]}`
	if got := node.Annotations[v1alpha1.AnnotationNodeSelector]; got != want {
		t.Errorf("selector %s, want %s", got, want)
	}
	if c := nodes.FindCondition(node, corev1.NodeDiskPressure); c.Status != corev1.ConditionTrue {
		t.Errorf("disk pressure is %s", c.Status)
	}
	if got := node.Status.Allocatable[corev1.ResourceCPU]; got.Cmp(resource.MustParse("6")) != 0 {
		t.Errorf("%s CPUs", got.String())
	}
	setMetadata(node, seen(ofGroup(groupOf(func(g *member.NodeGroup) { g.Labels, g.Topologies = map[string]string{"pool": "y"}, nil }))))
	_, team := node.Labels["team"]
	_, zone := node.Labels[zoneKey]
	_, topology := node.Labels[v1alpha1.LabelTopologyPrefix+"a"]
	if team || zone || topology || node.Labels["pool"] != "y" {
		t.Errorf("labels of the earlier group remain: %v", node.Labels)
	}
}

func TestVirtualNodesOf(t *testing.T) {
	rules := []v1alpha1.NodeGroup{forEachNode()}
	node := func(name string) corev1.Node { return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	withRules := func(o *observed) {
		o.registration.Spec.Nodes = rules
		o.state.NodeSummary.GroupRules, o.state.NodeSummary.Groups = rules, []member.NodeGroup{{Name: "p"}, {Name: "q"}}
	}
	whole, p, old := node("kosmos-cluster38"), node("p.kosmos-cluster38"), node("old.kosmos-cluster38")
	for name, tc := range map[string]struct {
		member   observed
		existing []corev1.Node
		pods     []corev1.Pod
		want     string
	}{
		"one node":                         {seen(), nil, nil, "kosmos-cluster38"},
		"one node, which exists":           {seen(), []corev1.Node{whole}, nil, "kosmos-cluster38"},
		"groups":                           {seen(withRules), []corev1.Node{p}, nil, "p.kosmos-cluster38 group, q.kosmos-cluster38 group"},
		"a group is lost":                  {seen(withRules), []corev1.Node{p, old}, nil, "p.kosmos-cluster38 group, q.kosmos-cluster38 group, old.kosmos-cluster38 lost"},
		"rules are set":                    {seen(withRules), []corev1.Node{whole}, nil, "p.kosmos-cluster38 group, q.kosmos-cluster38 group, kosmos-cluster38 lost"},
		"rules are removed":                {seen(), []corev1.Node{p}, nil, "kosmos-cluster38, p.kosmos-cluster38 lost"},
		"groups are not known":             {seen(withRules, notKnown), []corev1.Node{p, whole}, nil, "p.kosmos-cluster38, kosmos-cluster38 lost"},
		"groups of earlier rules":          {seen(withRules, func(o *observed) { o.state.NodeSummary.GroupRules = nil }), []corev1.Node{p}, nil, "p.kosmos-cluster38"},
		"a Node is gone, but not its Pods": {seen(withRules, notKnown), []corev1.Node{p}, []corev1.Pod{{Spec: corev1.PodSpec{NodeName: "q.kosmos-cluster38"}}}, "p.kosmos-cluster38, q.kosmos-cluster38"},
		"a Node of an earlier name":        {seen(withRules), []corev1.Node{node("other")}, nil, "p.kosmos-cluster38 group, q.kosmos-cluster38 group"},
		"the registration is gone":         {seen(func(o *observed) { o.registration = nil }), []corev1.Node{p, whole}, nil, "p.kosmos-cluster38, kosmos-cluster38"},
		"the registration never existed":   {observed{}, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.member.name = ""
			var got []string
			for _, o := range virtualNodesOf(tc.member, tc.existing, tc.pods) {
				text := o.name
				if o.group != nil {
					text += " group"
				}
				if o.lost {
					text += " lost"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

// A member whose nodes change all the time must not load the host, and its capacity must not delay other writes.
func TestWritesToNodesOfGroupsAreLimited(t *testing.T) {
	r := &Reconciler{}
	r.setDefaults()
	node := newVirtualNode(seen(ofGroup(groupOf())))
	ready := node.DeepCopy()
	setNodeStatus(ready, seen(ofGroup(groupOf())))
	count := func(registration string, before *corev1.Node, at time.Time) (allowed int) {
		for range 2 * groupWritesBurst {
			if r.limitsOf(registration).allow(before, patchNodeStatus{ready}, at) {
				allowed++
			}
		}
		return allowed
	}
	if first, second := count("a", node, start), count("b", node, start); first != groupWritesBurst || second != groupWritesBurst {
		t.Errorf("at first, %d and %d writes are allowed, want %d for each registration", first, second, groupWritesBurst)
	}
	if capacities := count("a", ready, start); capacities != v1alpha1.MaxNodesOfMember {
		t.Errorf("%d writes of capacities are allowed, want %d", capacities, v1alpha1.MaxNodesOfMember)
	}
	if later := count("a", node, start.Add(10*time.Second)); later != 10*groupWrites {
		t.Errorf("after 10 s, %d writes are allowed, want %d", later, 10*groupWrites)
	}
}
