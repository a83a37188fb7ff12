package podspec

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// preferredGroupWeight is the weight of a group whose nodes a leaf Pod only prefers: the maximum.
const preferredGroupWeight = 100

// GroupSelectorOf returns the term that selects, in the member, the nodes of the group that a virtual node represents. It
// returns false if the Node is nil, or has no usable term.
func GroupSelectorOf(node *corev1.Node) (corev1.NodeSelectorTerm, bool) {
	var term corev1.NodeSelectorTerm
	if node == nil || json.Unmarshal([]byte(node.Annotations[v1alpha1.AnnotationNodeSelector]), &term) != nil || isEmptyTerm(term) {
		return corev1.NodeSelectorTerm{}, false
	}
	_, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}})
	return term, err == nil
}

// RequireGroup makes a leaf Pod require the nodes of a group, in addition to what it requires already. The terms of a
// required node affinity are alternatives, so each of them gets the requirements.
func RequireGroup(leaf *corev1.Pod, group corev1.NodeSelectorTerm) {
	affinity := nodeAffinityFor(leaf)
	required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{*group.DeepCopy()}}
		return
	}
	for i := range required.NodeSelectorTerms {
		term, more := &required.NodeSelectorTerms[i], group.DeepCopy()
		term.MatchExpressions = append(term.MatchExpressions, more.MatchExpressions...)
		term.MatchFields = append(term.MatchFields, more.MatchFields...)
	}
}

// PreferGroup makes a leaf Pod prefer the nodes of a group.
func PreferGroup(leaf *corev1.Pod, group corev1.NodeSelectorTerm) {
	affinity := nodeAffinityFor(leaf)
	affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
		corev1.PreferredSchedulingTerm{Weight: preferredGroupWeight, Preference: *group.DeepCopy()})
}

func nodeAffinityFor(leaf *corev1.Pod) *corev1.NodeAffinity {
	if leaf.Spec.Affinity == nil {
		leaf.Spec.Affinity = &corev1.Affinity{}
	}
	if leaf.Spec.Affinity.NodeAffinity == nil {
		leaf.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return leaf.Spec.Affinity.NodeAffinity
}

// IsKeptToGroup reports whether a leaf Pod requires or prefers the nodes of a group.
func IsKeptToGroup(leaf *corev1.Pod, group corev1.NodeSelectorTerm) bool {
	if leaf.Spec.Affinity == nil || leaf.Spec.Affinity.NodeAffinity == nil {
		return false
	}
	affinity := leaf.Spec.Affinity.NodeAffinity
	if slices.ContainsFunc(affinity.PreferredDuringSchedulingIgnoredDuringExecution, func(p corev1.PreferredSchedulingTerm) bool {
		return p.Weight == preferredGroupWeight && equality.Semantic.DeepEqual(p.Preference, group)
	}) {
		return true
	}
	required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
	return required != nil && len(required.NodeSelectorTerms) > 0 && !slices.ContainsFunc(required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return !containsAll(term.MatchExpressions, group.MatchExpressions) || !containsAll(term.MatchFields, group.MatchFields)
	})
}

func containsAll(in, wanted []corev1.NodeSelectorRequirement) bool {
	return !slices.ContainsFunc(wanted, func(want corev1.NodeSelectorRequirement) bool {
		return !slices.ContainsFunc(in, func(has corev1.NodeSelectorRequirement) bool { return equality.Semantic.DeepEqual(has, want) })
	})
}
