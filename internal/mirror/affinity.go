// This file builds and recognizes the node affinities with which host PVs select virtual
// nodes. Each selects the nodes that have one label.

package mirror

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// NodeAffinityToMember selects the virtual node of a member.
func NodeAffinityToMember(clusterID string) *corev1.VolumeNodeAffinity {
	return NodeAffinityToLabel(v1alpha1.LabelClusterID, clusterID)
}

// NodeAffinityToLabel selects the nodes with a label.
func NodeAffinityToLabel(label, value string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: NodeSelectorForLabel(label, value)}
}

// NodeSelectorForLabel selects the nodes with a label.
func NodeSelectorForLabel(label, value string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{NodeSelectorTermForLabel(label, value)}}
}

// NodeSelectorTermForLabel is the only term of NodeSelectorForLabel's result.
func NodeSelectorTermForLabel(label, value string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}
}

// IsNodeAffinityToMember reports whether a is NodeAffinityToMember's result.
func IsNodeAffinityToMember(a *corev1.VolumeNodeAffinity, clusterID string) bool {
	return IsNodeAffinityToLabel(a, v1alpha1.LabelClusterID, clusterID)
}

// IsNodeAffinityToLabel reports whether a is NodeAffinityToLabel's result.
func IsNodeAffinityToLabel(a *corev1.VolumeNodeAffinity, label, value string) bool {
	return a != nil && a.Required != nil && len(a.Required.NodeSelectorTerms) == 1 && IsNodeSelectorTermForLabel(a.Required.NodeSelectorTerms[0], label, value)
}

// IsNodeSelectorTermForLabel reports whether a term is NodeSelectorTermForLabel's result.
func IsNodeSelectorTermForLabel(term corev1.NodeSelectorTerm, label, value string) bool {
	if len(term.MatchExpressions) != 1 || len(term.MatchFields) != 0 {
		return false
	}
	e := term.MatchExpressions[0]
	return e.Key == label && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 && e.Values[0] == value
}
