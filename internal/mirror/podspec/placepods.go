package podspec

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// softWeight is the weight of a required term that became a preferred one. It is the maximum
// weight.
const softWeight = 100

// memberSpread translates topology spread constraints. Every node has a host name label, so hard
// constraints on that topology stay hard. On other topologies, a hard constraint would exclude
// nodes without the label, possibly all nodes.
func memberSpread(constraints []corev1.TopologySpreadConstraint, labels map[string]string) []corev1.TopologySpreadConstraint {
	var kept []corev1.TopologySpreadConstraint
	for _, c := range constraints {
		if v1alpha1.Reserved(c.TopologyKey) {
			continue
		}
		if c.TopologyKey != corev1.LabelHostname {
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		}
		c.LabelSelector = withLabelKeys(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn, labels)
		c.MatchLabelKeys = nil
		kept = append(kept, c)
	}
	return oncePerTopology(kept)
}

// oncePerTopology removes constraints with the same topologyKey and whenUnsatisfiable. Softening
// can cause such duplicates, and the API rejects them.
func oncePerTopology(constraints []corev1.TopologySpreadConstraint) []corev1.TopologySpreadConstraint {
	type pair struct {
		key  string
		when corev1.UnsatisfiableConstraintAction
	}
	var kept []corev1.TopologySpreadConstraint
	seen := map[pair]bool{}
	for _, c := range constraints {
		if p := (pair{c.TopologyKey, c.WhenUnsatisfiable}); !seen[p] {
			seen[p] = true
			kept = append(kept, c)
		}
	}
	return kept
}

// memberPodAffinity keeps required terms that every member can evaluate: co-location by host name.
// It turns other required terms into preferred ones.
func memberPodAffinity(a *corev1.PodAffinity, labels map[string]string) *corev1.PodAffinity {
	if a == nil {
		return nil
	}
	var member corev1.PodAffinity
	for _, t := range memberPodTerms(a.RequiredDuringSchedulingIgnoredDuringExecution, labels) {
		if isEvaluableInMember(t) {
			member.RequiredDuringSchedulingIgnoredDuringExecution = append(member.RequiredDuringSchedulingIgnoredDuringExecution, t)
		} else {
			member.PreferredDuringSchedulingIgnoredDuringExecution = append(member.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.WeightedPodAffinityTerm{Weight: softWeight, PodAffinityTerm: t})
		}
	}
	member.PreferredDuringSchedulingIgnoredDuringExecution = append(member.PreferredDuringSchedulingIgnoredDuringExecution,
		memberWeightedPodTerms(a.PreferredDuringSchedulingIgnoredDuringExecution, labels)...)
	if len(member.RequiredDuringSchedulingIgnoredDuringExecution) == 0 && len(member.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	return &member
}

// memberPodAntiAffinity drops only terms on Xylem's own topologies. A node without the
// topology's label never violates an anti-affinity.
func memberPodAntiAffinity(a *corev1.PodAntiAffinity, labels map[string]string) *corev1.PodAntiAffinity {
	if a == nil {
		return nil
	}
	member := corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  memberPodTerms(a.RequiredDuringSchedulingIgnoredDuringExecution, labels),
		PreferredDuringSchedulingIgnoredDuringExecution: memberWeightedPodTerms(a.PreferredDuringSchedulingIgnoredDuringExecution, labels),
	}
	if len(member.RequiredDuringSchedulingIgnoredDuringExecution) == 0 && len(member.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	return &member
}

// isEvaluableInMember reports whether a member's nodes and namespaces are guaranteed to have the labels
// that a term refers to.
func isEvaluableInMember(t corev1.PodAffinityTerm) bool {
	if t.TopologyKey != corev1.LabelHostname {
		return false
	}
	if t.NamespaceSelector == nil {
		return true
	}
	for key := range t.NamespaceSelector.MatchLabels {
		if key != corev1.LabelMetadataName {
			return false
		}
	}
	for _, e := range t.NamespaceSelector.MatchExpressions {
		if e.Key != corev1.LabelMetadataName {
			return false
		}
	}
	return true
}

func memberPodTerms(terms []corev1.PodAffinityTerm, labels map[string]string) []corev1.PodAffinityTerm {
	var kept []corev1.PodAffinityTerm
	for _, t := range terms {
		if !v1alpha1.Reserved(t.TopologyKey) {
			kept = append(kept, memberPodTerm(t, labels))
		}
	}
	return kept
}

func memberWeightedPodTerms(terms []corev1.WeightedPodAffinityTerm, labels map[string]string) []corev1.WeightedPodAffinityTerm {
	var kept []corev1.WeightedPodAffinityTerm
	for _, t := range terms {
		if !v1alpha1.Reserved(t.PodAffinityTerm.TopologyKey) {
			kept = append(kept, corev1.WeightedPodAffinityTerm{Weight: t.Weight, PodAffinityTerm: memberPodTerm(t.PodAffinityTerm, labels)})
		}
	}
	return kept
}

func memberPodTerm(t corev1.PodAffinityTerm, labels map[string]string) corev1.PodAffinityTerm {
	t.LabelSelector = withLabelKeys(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn, labels)
	t.LabelSelector = withLabelKeys(t.LabelSelector, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn, labels)
	t.MatchLabelKeys, t.MismatchLabelKeys = nil, nil
	return t
}

// withLabelKeys merges matchLabelKeys into a label selector, as the API server does when it stores
// a Pod. The host's API server has usually merged them, but not every version does this for every
// field. If the leaf kept the keys, the member's API server would reject them as duplicates
// (ValidateMatchLabelKeysAndMismatchLabelKeys).
func withLabelKeys(selector *metav1.LabelSelector, keys []string, op metav1.LabelSelectorOperator, labels map[string]string) *metav1.LabelSelector {
	if selector == nil || len(keys) == 0 {
		return selector
	}
	selector = selector.DeepCopy()
	for _, key := range keys {
		value, ok := labels[key]
		if ok && !hasRequirement(selector, key, op, value) {
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{value}})
		}
	}
	return selector
}

func hasRequirement(selector *metav1.LabelSelector, key string, op metav1.LabelSelectorOperator, value string) bool {
	for _, e := range selector.MatchExpressions {
		if e.Key == key && e.Operator == op && len(e.Values) == 1 && e.Values[0] == value {
			return true
		}
	}
	return false
}
