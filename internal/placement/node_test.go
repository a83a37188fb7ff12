package placement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func virtualNode(change func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "kosmos-cluster38", Labels: map[string]string{
			"kubernetes.io/hostname": "kosmos-cluster38", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "kosmos.io/node", Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
	}
	if change != nil {
		change(node)
	}
	return node
}

func labelled(expression corev1.NodeSelectorRequirement) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{expression}}}}
}

func TestAdmitAndSchedulable(t *testing.T) {
	tolerant := []corev1.Toleration{{Key: "kosmos.io/node", Operator: "Equal", Value: "true", Effect: "NoSchedule"}}
	cases := map[string]struct {
		spec        corev1.PodSpec
		node        func(*corev1.Node)
		reason      string
		message     string
		schedulable bool
	}{
		"the Pod tolerates the taint": {
			spec:        corev1.PodSpec{Tolerations: tolerant},
			schedulable: true,
		},
		"a NoSchedule taint: only the scheduler rejects the Pod": {
			spec: corev1.PodSpec{},
		},
		"the node selector matches": {
			spec:        corev1.PodSpec{Tolerations: tolerant, NodeSelector: map[string]string{"kubernetes.io/os": "linux"}},
			schedulable: true,
		},
		"the node selector does not match": {
			spec:    corev1.PodSpec{Tolerations: tolerant, NodeSelector: map[string]string{"kubernetes.io/arch": "arm64"}},
			reason:  "NodeAffinity",
			message: "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
		},
		"the affinity names the node": {
			spec: corev1.PodSpec{Tolerations: tolerant, Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"kosmos-cluster38"}}},
				}}},
			}}},
			schedulable: true,
		},
		"the affinity names another node": {
			spec: corev1.PodSpec{Tolerations: tolerant, Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: labelled(corev1.NodeSelectorRequirement{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{"kosmos-other"}}),
			}}},
			reason: "NodeAffinity",
		},
		"an invalid affinity matches nothing": {
			spec: corev1.PodSpec{Tolerations: tolerant, Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: labelled(corev1.NodeSelectorRequirement{Key: "a", Operator: "Is"}),
			}}},
			reason: "NodeAffinity",
		},
		"a NoExecute taint": {
			spec: corev1.PodSpec{Tolerations: tolerant},
			node: func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "gone", Effect: corev1.TaintEffectNoExecute}}
			},
			reason:  "TaintToleration",
			message: "gone:NoExecute",
		},
		"a tolerated NoExecute taint": {
			spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: "Exists"}}},
			node: func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "gone", Effect: corev1.TaintEffectNoExecute}}
			},
			schedulable: true,
		},
		"a toleration for another value": {
			spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "kosmos.io/node", Value: "false"}}},
		},
		"a toleration for any value": {
			spec:        corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "kosmos.io/node", Operator: "Exists"}}},
			schedulable: true,
		},
		"a toleration for any effect": {
			spec:        corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "kosmos.io/node", Value: "true"}}},
			schedulable: true,
		},
		"a toleration for another effect": {
			spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "kosmos.io/node", Value: "true", Effect: "NoExecute"}}},
		},
		"a toleration for another key": {
			spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "other", Operator: "Exists"}}},
		},
		"a comparison": {
			spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "kosmos.io/node", Operator: "Lt", Value: "9"}}},
			node: func(n *corev1.Node) { n.Spec.Taints[0].Value = "1" },
		},
		"another operating system": {
			spec:        corev1.PodSpec{Tolerations: tolerant, OS: &corev1.PodOS{Name: corev1.Windows}},
			reason:      "PodOSNotSupported",
			schedulable: true, // the scheduler does not evaluate spec.os
		},
		"the same operating system": {
			spec:        corev1.PodSpec{Tolerations: tolerant, OS: &corev1.PodOS{Name: corev1.Linux}},
			schedulable: true,
		},
		"gated": {
			spec: corev1.PodSpec{Tolerations: tolerant, SchedulingGates: []corev1.PodSchedulingGate{{Name: "quota"}}},
		},
		"cordoned": {
			spec: corev1.PodSpec{Tolerations: tolerant},
			node: func(n *corev1.Node) { n.Spec.Unschedulable = true },
		},
		"cordoned, and the Pod tolerates it": {
			spec:        corev1.PodSpec{Tolerations: append(tolerant, corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: "Exists"})},
			node:        func(n *corev1.Node) { n.Spec.Unschedulable = true },
			schedulable: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod, node := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: c.spec}, virtualNode(c.node)
			reason, message := "", ""
			if refusal := KubeletRejection(pod, node); refusal != nil {
				reason, message = refusal.Reason, refusal.Message
			}
			if reason != c.reason || !strings.Contains(message, c.message) {
				t.Errorf("admission: %q, %q; want %q, %q", reason, message, c.reason, c.message)
			}
			if got := SchedulableOnNode(pod, node); got != c.schedulable {
				t.Errorf("schedulable: %v", got)
			}
		})
	}
}
