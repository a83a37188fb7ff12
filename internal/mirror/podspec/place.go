package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// KeepMemberConstraints removes constraints that the host's scheduler evaluated when it selected the virtual
// node, and keeps those that the member's scheduler must evaluate.
func KeepMemberConstraints(spec *corev1.PodSpec, labels map[string]string, m mirror.Member) {
	spec.NodeSelector = memberSelector(spec.NodeSelector)
	spec.Tolerations = memberTolerations(spec.Tolerations)
	spec.TopologySpreadConstraints = memberSpread(spec.TopologySpreadConstraints, labels)
	if spec.Affinity == nil {
		return
	}
	spec.Affinity.NodeAffinity = memberNodeAffinity(spec.Affinity.NodeAffinity, m)
	spec.Affinity.PodAffinity = memberPodAffinity(spec.Affinity.PodAffinity, labels)
	spec.Affinity.PodAntiAffinity = memberPodAntiAffinity(spec.Affinity.PodAntiAffinity, labels)
	if *spec.Affinity == (corev1.Affinity{}) {
		spec.Affinity = nil
	}
}

// kubeletNodeLabels lists the labels that every kubelet sets on its node and that do not identify the
// node. Requirements on other labels refer to the host's nodes, and the virtual node satisfies
// them. The member's nodes may lack those labels.
var kubeletNodeLabels = []string{corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch"}

func memberSelector(selector map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range selector {
		if slices.Contains(kubeletNodeLabels, key) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

func memberNodeAffinity(a *corev1.NodeAffinity, m mirror.Member) *corev1.NodeAffinity {
	if a == nil {
		return nil
	}
	member := corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  memberRequiredTerms(a.RequiredDuringSchedulingIgnoredDuringExecution, m),
		PreferredDuringSchedulingIgnoredDuringExecution: memberPreferredTerms(a.PreferredDuringSchedulingIgnoredDuringExecution, m),
	}
	if member.RequiredDuringSchedulingIgnoredDuringExecution == nil && len(member.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	return &member
}

// memberRequiredTerms translates the terms of a required node affinity, which are alternatives. If a term
// becomes empty, every node of the member satisfies it, and therefore the whole requirement.
func memberRequiredTerms(s *corev1.NodeSelector, m mirror.Member) *corev1.NodeSelector {
	if s == nil {
		return nil
	}
	var terms []corev1.NodeSelectorTerm
	for _, term := range s.NodeSelectorTerms {
		if !maySelectMember(term, m) {
			continue
		}
		left := memberNodeTerm(term)
		if isEmptyTerm(left) {
			return nil
		}
		terms = append(terms, left)
	}
	if len(terms) == 0 {
		// No term matches this member, so the Pod was bound by its nodeName. Admit decides whether
		// to accept the Pod.
		return nil
	}
	return &corev1.NodeSelector{NodeSelectorTerms: terms}
}

func memberPreferredTerms(preferred []corev1.PreferredSchedulingTerm, m mirror.Member) []corev1.PreferredSchedulingTerm {
	var terms []corev1.PreferredSchedulingTerm
	for _, p := range preferred {
		left := memberNodeTerm(p.Preference)
		if maySelectMember(p.Preference, m) && !isEmptyTerm(left) {
			terms = append(terms, corev1.PreferredSchedulingTerm{Weight: p.Weight, Preference: left})
		}
	}
	return terms
}

func memberNodeTerm(term corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
	var left corev1.NodeSelectorTerm
	for _, e := range term.MatchExpressions {
		if slices.Contains(kubeletNodeLabels, e.Key) {
			left.MatchExpressions = append(left.MatchExpressions, e)
		}
	}
	return left
}

// maySelectMember reports whether this member's virtual node may satisfy a term, judging by the labels
// that every virtual node has. No node satisfies an empty term.
func maySelectMember(term corev1.NodeSelectorTerm, m mirror.Member) bool {
	if isEmptyTerm(term) {
		return false
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.NodeName, Labels: map[string]string{
		corev1.LabelHostname:      m.NodeName,
		v1alpha1.LabelCluster:     m.Registration,
		v1alpha1.LabelClusterID:   m.ClusterID,
		v1alpha1.LabelVirtualNode: "true",
	}}}
	known := corev1.NodeSelectorTerm{MatchFields: term.MatchFields}
	for _, e := range term.MatchExpressions {
		if _, ok := node.Labels[e.Key]; ok {
			known.MatchExpressions = append(known.MatchExpressions, e)
		}
	}
	if isEmptyTerm(known) {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{known}})
	return err == nil && selector.Match(node)
}

func isEmptyTerm(t corev1.NodeSelectorTerm) bool {
	return len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0
}

// defaultTolerationSeconds is the duration of the toleration that admission adds to Pods that lack
// a toleration for nodes that are not ready or unreachable (kube-apiserver's default).
const defaultTolerationSeconds = 300

func memberTolerations(tolerations []corev1.Toleration) []corev1.Toleration {
	var kept []corev1.Toleration
	for _, t := range tolerations {
		if t.Key != v1alpha1.DefaultTaintKey && !v1alpha1.Reserved(t.Key) && !isDefaultToleration(t) {
			kept = append(kept, t)
		}
	}
	return kept
}

func isDefaultToleration(t corev1.Toleration) bool {
	return (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) &&
		t.Operator == corev1.TolerationOpExists && t.Effect == corev1.TaintEffectNoExecute &&
		t.TolerationSeconds != nil && *t.TolerationSeconds == defaultTolerationSeconds
}
