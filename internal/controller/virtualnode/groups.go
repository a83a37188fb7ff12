package virtualnode

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/hostpv"
	"github.com/xylem-io/xylem/internal/nodes"
	"github.com/xylem-io/xylem/internal/wording"
)

// pressures are the conditions with which kubelets report a shortage.
var pressures = []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}

// grouping divides a member's nodes into the groups of spec.nodes.
type grouping struct {
	rules      []v1alpha1.NodeGroup
	memberNode string
	requested  map[string]corev1.ResourceList // by node
	topologies []hostpv.Topology
	// before are the names of the groups that have virtual nodes, which have precedence if there are too many.
	before  sets.Set[string]
	matches *topologyMatches

	groups  []*nodeGroup
	byName  map[string]*nodeGroup
	matched []int // the number of nodes of each rule
	// unmatched are the nodes that match no rule, and overlapping those that match further rules, whose Pods may run
	// on them. clashing are names that several rules give to a group.
	unmatched, overlapping, clashing []string
	problems                         []string // what else is wrong
}

type nodeGroup struct {
	name     string
	rule     int
	selector corev1.NodeSelectorTerm
	labels   map[string]string
	nodes    []*corev1.Node
}

// groupNodes divides the nodes, and describes what the rules leave out.
func (g *grouping) groupNodes(list []*corev1.Node) ([]member.NodeGroup, string) {
	g.byName, g.matched = map[string]*nodeGroup{}, make([]int, len(g.rules))
	selectors := make([]labels.Selector, len(g.rules))
	for i, rule := range g.rules {
		var err error
		if selectors[i], err = selectorOf(rule); err != nil {
			g.problems = append(g.problems, fmt.Sprintf("spec.nodes[%d].selector is invalid: %v", i, err))
		}
	}
	sorted := slices.SortedFunc(slices.Values(list), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	byRule := make([][]*corev1.Node, len(g.rules))
	for _, node := range sorted {
		if rule := g.ruleOf(node, selectors); rule >= 0 {
			byRule[rule] = append(byRule[rule], node)
		}
	}
	for rule, matching := range byRule {
		for _, node := range matching {
			g.addNode(rule, node)
		}
	}
	kept := g.keptGroups()
	found := make([]member.NodeGroup, 0, len(kept))
	if g.matches == nil {
		g.matches = &topologyMatches{}
	}
	satisfied := g.matches.topologiesByNode(sorted, g.topologies)
	for _, group := range kept {
		found = append(found, g.summaryOf(group, satisfied))
	}
	return found, g.describeProblem()
}

// keptGroups returns the groups that get virtual nodes, sorted by rule and name.
func (g *grouping) keptGroups() []*nodeGroup {
	rank := func(group *nodeGroup) int {
		if g.before.Has(group.name) {
			return 0
		}
		return 1
	}
	byRule := func(a, b *nodeGroup) int { return cmp.Or(a.rule-b.rule, strings.Compare(a.name, b.name)) }
	slices.SortFunc(g.groups, func(a, b *nodeGroup) int { return cmp.Or(rank(a)-rank(b), byRule(a, b)) })
	kept := g.groups[:min(len(g.groups), v1alpha1.MaxNodesOfMember)]
	slices.SortFunc(kept, byRule)
	return kept
}

// ruleOf returns the index of the first rule that matches a node, or -1.
func (g *grouping) ruleOf(node *corev1.Node, selectors []labels.Selector) int {
	mine, overlaps := -1, false
	for i, rule := range g.rules {
		if !selectors[i].Matches(labels.Set(node.Labels)) || rule.ForEach != nil && rule.ForEach.LabelKey != "" && !hasLabel(node, rule.ForEach.LabelKey) {
			continue
		}
		g.matched[i]++
		if mine < 0 {
			mine = i
		} else if rule.ForEach == nil || !rule.ForEach.Node { // the Pods of a node's own group cannot run on others
			overlaps = true
		}
	}
	if overlaps {
		g.overlapping = append(g.overlapping, node.Name)
	}
	if mine < 0 {
		g.unmatched = append(g.unmatched, node.Name)
	}
	return mine
}

func (g *grouping) addNode(rule int, node *corev1.Node) {
	group := g.newGroup(rule, node)
	if there := g.byName[group.name]; there != nil {
		if there.rule != rule {
			g.clashing = append(g.clashing, group.name)
			return
		}
		there.nodes = append(there.nodes, node)
		return
	}
	group.nodes = []*corev1.Node{node}
	g.byName[group.name] = group
	g.groups = append(g.groups, group)
}

// hasLabel reports whether a node has a label with a valid value. A member's API server admits no other.
func hasLabel(node *corev1.Node, key string) bool {
	value, found := node.Labels[key]
	return found && value != "" && len(validation.IsValidLabelValue(value)) == 0
}

// newGroup returns the group that a rule forms for a node.
func (g *grouping) newGroup(index int, node *corev1.Node) *nodeGroup {
	rule := g.rules[index]
	group := &nodeGroup{rule: index, selector: termOf(rule.Selector), labels: map[string]string{}}
	if rule.Selector != nil {
		maps.Copy(group.labels, rule.Selector.MatchLabels)
	}
	limit := validation.LabelValueMaxLength - len(g.memberNode) - 1 // the label kubernetes.io/hostname has the whole name
	switch each := rule.ForEach; {
	case each == nil:
		group.name = rule.Name
	case each.Node:
		group.name = groupNameOf(node.Name, limit)
		group.selector.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Name}}}
	default:
		value := node.Labels[each.LabelKey]
		group.name = groupNameOf(value, limit)
		group.selector.MatchExpressions = append(group.selector.MatchExpressions, corev1.NodeSelectorRequirement{Key: each.LabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
		group.labels[each.LabelKey] = value
	}
	maps.DeleteFunc(group.labels, func(key, _ string) bool { return !maySetLabel(key) })
	return group
}

var (
	kubernetesKey = regexp.MustCompile(`^([^/]*[.])?(kubernetes|k8s)[.]io/`)
	zoneKeys      = []string{corev1.LabelTopologyRegion, corev1.LabelTopologyZone}
)

// maySetLabel reports whether a virtual node may get a label from the member's nodes. Labels of Kubernetes and Xylem
// describe the virtual node itself, except for zone and region (as in the validation of spec.node.labels).
func maySetLabel(key string) bool {
	return slices.Contains(zoneKeys, key) || !kubernetesKey.MatchString(key) && !v1alpha1.Reserved(key) && !strings.HasPrefix(key, v1alpha1.LabelBackendPrefix)
}

var notInName = regexp.MustCompile(`[^a-z0-9-]`)

// groupNameOf returns a text as a group's name. The name ends in a hash if it differs from the text, so that different
// texts have different names.
func groupNameOf(text string, limit int) string {
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if name == text && len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:4])
	return strings.TrimLeft(name[:max(0, min(len(name), limit-len(hash)-1))]+"-"+hash, "-")
}

// selectorOf returns a rule's selector. Without one, a rule selects all nodes. An invalid one selects none.
func selectorOf(rule v1alpha1.NodeGroup) (labels.Selector, error) {
	if rule.Selector == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(rule.Selector)
	if err != nil {
		return labels.Nothing(), fmt.Errorf("parse the selector: %w", err)
	}
	return selector, nil
}

// termOf returns the term that selects the same nodes as a label selector.
func termOf(selector *metav1.LabelSelector) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	if selector == nil {
		return term
	}
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{selector.MatchLabels[key]}})
	}
	for _, e := range selector.MatchExpressions {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOperator(e.Operator), Values: slices.Clone(e.Values)})
	}
	return term
}

// topologyMatches remembers which topologies each node satisfies. A match of 5,000 nodes with 1,000 topologies takes seconds, but
// labels rarely change.
type topologyMatches struct {
	keys   []string // of the labels of all topologies
	byNode map[string]nodeTopologies
}

// nodeTopologies are the keys of the labels for the topologies that a node with these labels satisfies.
type nodeTopologies struct {
	labels    map[string]string
	satisfied sets.Set[string]
}

// topologiesByNode returns the topologies that each node satisfies, ready or not.
func (m *topologyMatches) topologiesByNode(list []*corev1.Node, topologies []hostpv.Topology) map[string]nodeTopologies {
	keys := make([]string, len(topologies))
	selectors := make([]*nodeaffinity.LazyErrorNodeSelector, len(topologies))
	for i, t := range topologies {
		keys[i] = t.Label
		selectors[i] = nodeaffinity.NewLazyErrorNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{t.Term}})
	}
	before := m.byNode
	if !slices.Equal(keys, m.keys) {
		before = nil
	}
	m.keys, m.byNode = keys, make(map[string]nodeTopologies, len(list))
	for _, node := range list {
		known, found := before[node.Name]
		if !found || !maps.Equal(known.labels, node.Labels) {
			known = nodeTopologies{labels: node.Labels, satisfied: sets.New[string]()}
			for i, selector := range selectors {
				if matches, err := selector.Match(node); err == nil && matches {
					known.satisfied.Insert(keys[i])
				}
			}
		}
		m.byNode[node.Name] = known
	}
	return m.byNode
}

func (g *grouping) summaryOf(group *nodeGroup, satisfied map[string]nodeTopologies) member.NodeGroup {
	made := member.NodeGroup{Name: group.name, Selector: group.selector, Labels: group.labels, Summary: sumCapacity(group.nodes, g.requested), Cordoned: true}
	for _, key := range zoneKeys {
		values := sets.New[string]()
		for i := range group.nodes {
			values.Insert(group.nodes[i].Labels[key])
		}
		if value := onlyValueOf(values); value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			made.Labels[key] = value
		}
	}
	topologies, under := sets.New[string](), map[corev1.NodeConditionType]int{}
	for i := range group.nodes {
		node := group.nodes[i]
		topologies = topologies.Union(satisfied[node.Name].satisfied)
		made.Cordoned = made.Cordoned && node.Spec.Unschedulable
		for _, kind := range pressures {
			if c := nodes.FindCondition(node, kind); c != nil && c.Status == corev1.ConditionTrue {
				under[kind]++
			}
		}
	}
	made.Topologies = sets.List(topologies)
	made.Pressures = slices.DeleteFunc(slices.Clone(pressures), func(kind corev1.NodeConditionType) bool { return under[kind] < len(group.nodes) })
	return made
}

// namedNodes is the maximum number of nodes that a description names.
const namedNodes = 3

func (g *grouping) describeProblem() string {
	problems := g.problems
	for i, count := range g.matched {
		if count == 0 {
			problems = append(problems, fmt.Sprintf("spec.nodes[%d] matches no node of the member", i))
		}
	}
	if n := len(g.unmatched); n > 0 {
		problems = append(problems, fmt.Sprintf("no rule of spec.nodes matches %s of the member, which get no Pods: %s", wording.CountNoun(n, "node"), listNames(g.unmatched)))
	}
	if n := len(g.overlapping); n > 0 {
		problems = append(problems, fmt.Sprintf("several rules match %s. They belong to the first rule, but Pods of the other groups can run on them: %s", wording.CountNoun(n, "node"), listNames(g.overlapping)))
	}
	if len(g.clashing) > 0 {
		names := slices.Compact(slices.Sorted(slices.Values(g.clashing)))
		problems = append(problems, "several rules form groups of the same name. Only the first one has a virtual node: "+listNames(names))
	}
	if n := len(g.groups) - v1alpha1.MaxNodesOfMember; n > 0 {
		problems = append(problems, fmt.Sprintf("the rules form %d groups, but only %d can have virtual nodes", len(g.groups), v1alpha1.MaxNodesOfMember))
	}
	return strings.Join(problems, "; ")
}

// listNames lists names that a member reports.
func listNames(names []string) string {
	return mirror.PlainText(wording.FirstNames(names, namedNodes, ", "), namedNodes*validation.DNS1123SubdomainMaxLength)
}
