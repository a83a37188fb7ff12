// This file builds and recognizes the node affinities with which host PVs select virtual
// nodes: by one label or, in a member with groups of nodes, by labels for the topologies of volumes.

package mirror

import (
	"strings"

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

// NodeAffinityToTopologies selects those virtual nodes of a member that have one of the labels for topologies, and the one
// that represents the whole member.
func NodeAffinityToTopologies(clusterID string, labels []string) *corev1.VolumeNodeAffinity {
	var terms []corev1.NodeSelectorTerm
	add := func(key string, operator corev1.NodeSelectorOperator) {
		term := NodeSelectorTermForLabel(v1alpha1.LabelClusterID, clusterID)
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: key, Operator: operator})
		terms = append(terms, term)
	}
	for _, label := range labels {
		add(label, corev1.NodeSelectorOpExists)
	}
	add(v1alpha1.LabelNodeGroup, corev1.NodeSelectorOpDoesNotExist)
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

// IsNodeAffinityToMember reports whether a is the result of NodeAffinityToMember or NodeAffinityToTopologies.
func IsNodeAffinityToMember(a *corev1.VolumeNodeAffinity, clusterID string) bool {
	return IsNodeAffinityToLabel(a, v1alpha1.LabelClusterID, clusterID) || IsNodeAffinityToTopologies(a, clusterID)
}

// IsNodeAffinityToTopologies reports whether a is NodeAffinityToTopologies' result for at least one label.
func IsNodeAffinityToTopologies(a *corev1.VolumeNodeAffinity, clusterID string) bool {
	if a == nil || a.Required == nil || len(a.Required.NodeSelectorTerms) < 2 {
		return false
	}
	last := len(a.Required.NodeSelectorTerms) - 1
	for i, term := range a.Required.NodeSelectorTerms {
		if len(term.MatchExpressions) != 2 || len(term.MatchFields) != 0 {
			return false
		}
		member, e := corev1.NodeSelectorTerm{MatchExpressions: term.MatchExpressions[:1]}, term.MatchExpressions[1]
		isTopology := strings.HasPrefix(e.Key, v1alpha1.LabelTopologyPrefix) && e.Operator == corev1.NodeSelectorOpExists
		isWhole := e.Key == v1alpha1.LabelNodeGroup && e.Operator == corev1.NodeSelectorOpDoesNotExist
		if !IsNodeSelectorTermForLabel(member, v1alpha1.LabelClusterID, clusterID) || len(e.Values) != 0 || i < last && !isTopology || i == last && !isWhole {
			return false
		}
	}
	return true
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
