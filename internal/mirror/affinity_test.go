package mirror

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func TestIsNodeAffinityToMember(t *testing.T) {
	const label = v1alpha1.LabelTopologyPrefix + "zone-a-0123456789abcdef"
	for name, c := range map[string]struct {
		of                     *corev1.VolumeNodeAffinity
		change                 func(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm
		toMember, toTopologies bool
	}{
		"none":               {},
		"the whole member":   {of: NodeAffinityToMember("id38"), toMember: true},
		"another member":     {of: NodeAffinityToMember("id39")},
		"a topology":         {of: NodeAffinityToTopologies("id38", []string{label}), toMember: true, toTopologies: true},
		"two topologies":     {of: NodeAffinityToTopologies("id38", []string{label, label + "b"}), toMember: true, toTopologies: true},
		"of another member":  {of: NodeAffinityToTopologies("id39", []string{label})},
		"no topology":        {of: NodeAffinityToTopologies("id38", nil)},
		"another label":      {of: NodeAffinityToTopologies("id38", []string{"team"})},
		"only the last term": {of: NodeAffinityToTopologies("id38", []string{label}), change: func(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm { return terms[1:] }},
		"without the last":   {of: NodeAffinityToTopologies("id38", []string{label, label}), change: func(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm { return terms[:2] }},
		"a term for any node": {of: NodeAffinityToTopologies("id38", []string{label}), change: func(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
			return append([]corev1.NodeSelectorTerm{{MatchExpressions: terms[0].MatchExpressions[1:]}}, terms...)
		}},
		"a term for a name": {of: NodeAffinityToTopologies("id38", []string{label}), change: func(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
			terms[0].MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node"}}}
			return terms
		}},
		"one member's, another's": {of: NodeAffinityToTopologies("id38", []string{label}), change: func(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
			return append(NodeAffinityToTopologies("id39", []string{label}).Required.NodeSelectorTerms[:1], terms...)
		}},
		"nodes without the label": {of: NodeAffinityToTopologies("id38", []string{label}), change: func(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
			terms[0].MatchExpressions[1].Operator = corev1.NodeSelectorOpDoesNotExist
			return terms
		}},
		"any cluster ID but one": {of: NodeAffinityToTopologies("id38", []string{label}), change: func(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
			terms[0].MatchExpressions[0].Operator = corev1.NodeSelectorOpNotIn
			return terms
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change != nil {
				c.of.Required.NodeSelectorTerms = c.change(c.of.Required.NodeSelectorTerms)
			}
			if got := IsNodeAffinityToMember(c.of, "id38"); got != c.toMember {
				t.Errorf("IsNodeAffinityToMember: %t", got)
			}
			if got := IsNodeAffinityToTopologies(c.of, "id38"); got != c.toTopologies {
				t.Errorf("IsNodeAffinityToTopologies: %t", got)
			}
		})
	}
}
