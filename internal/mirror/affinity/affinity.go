// Package affinity builds and recognizes the node affinities with which host PVs select virtual
// nodes. Each selects the nodes that have one label. It is pure.
package affinity

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// ToMember selects the virtual node of a member.
func ToMember(clusterID string) *corev1.VolumeNodeAffinity {
	return To(v1alpha1.LabelClusterID, clusterID)
}

// To selects the nodes with a label.
func To(label, value string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: Selector(label, value)}
}

// Selector selects the nodes with a label.
func Selector(label, value string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{Term(label, value)}}
}

// Term is the only term of a Selector.
func Term(label, value string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}
}

// IsToMember reports whether a is ToMember's result.
func IsToMember(a *corev1.VolumeNodeAffinity, clusterID string) bool {
	return IsTo(a, v1alpha1.LabelClusterID, clusterID)
}

// IsTo reports whether a is To's result.
func IsTo(a *corev1.VolumeNodeAffinity, label, value string) bool {
	return a != nil && a.Required != nil && len(a.Required.NodeSelectorTerms) == 1 && IsTerm(a.Required.NodeSelectorTerms[0], label, value)
}

// IsTerm reports whether a term is Term's result.
func IsTerm(term corev1.NodeSelectorTerm, label, value string) bool {
	if len(term.MatchExpressions) != 1 || len(term.MatchFields) != 0 {
		return false
	}
	e := term.MatchExpressions[0]
	return e.Key == label && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 && e.Values[0] == value
}
