package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/nodes"
)

// KubeletRejection returns why a kubelet would reject a Pod that is bound to the node, with the kubelet's
// reason and message (pkg/kubelet/lifecycle/predicate.go), or nil if the kubelet would admit it.
// Admit ignores resource amounts, because the member decides on its capacity.
func KubeletRejection(pod *corev1.Pod, node *corev1.Node) *mirror.Refusal {
	if os := pod.Spec.OS; os != nil {
		if has, ok := node.Labels[corev1.LabelOSStable]; ok && has != string(os.Name) {
			return podRejected(v1alpha1.ReasonPodOSNotSupported, "Failed to admit pod as the OS field doesn't match node OS")
		}
	}
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !matches {
		return podRejected(v1alpha1.ReasonNodeAffinity, predicateFailed(v1alpha1.ReasonNodeAffinity, "node(s) didn't match Pod's node affinity/selector"))
	}
	if taint, found := firstUntoleratedTaint(pod, node, corev1.TaintEffectNoExecute); found {
		return podRejected(v1alpha1.ReasonTaintToleration, predicateFailed(v1alpha1.ReasonTaintToleration,
			fmt.Sprintf("node(s) had taints that the pod didn't tolerate: %s", taint.ToString())))
	}
	return nil
}

func predicateFailed(name, what string) string {
	return fmt.Sprintf("Predicate %s failed: %s", name, what)
}

func podRejected(reason, message string) *mirror.Refusal {
	return &mirror.Refusal{Reason: reason, Message: "Pod was rejected: " + message}
}

// RepresentsMember reports whether a Node represents a member, or a group of its nodes. The host may have a node of its
// own that is named like the node of a group.
func RepresentsMember(node *corev1.Node, m mirror.Member) bool {
	return node != nil && (node.Name == m.NodeName || m.HasNode(node.Name) && nodes.RepresentsCluster(node, m.ClusterID))
}

// IsPodInMember reports whether a Pod is bound to the node of a member, or of a group of its nodes. node is the Pod's Node,
// or nil if it is missing: a Pod is then in the member only if it had a leaf there.
func IsPodInMember(pod *corev1.Pod, node *corev1.Node, m mirror.Member) bool {
	switch name := pod.Spec.NodeName; {
	case !m.HasNode(name):
		return false
	case name == m.NodeName:
		return true
	case node == nil:
		return podstatus.HadLeafPod(pod) && mirror.ReporterOfRoot(pod).ClusterID == m.ClusterID
	default:
		return node.Name == name && RepresentsMember(node, m)
	}
}

// SchedulableOnNode reports whether a scheduler may place the Pod on the node, according to the Pod's
// gates, selector, affinity and tolerations, and the node's taints and cordon. It is for schedulers
// that do not publish the nominated node.
func SchedulableOnNode(pod *corev1.Pod, node *corev1.Node) bool {
	if len(pod.Spec.SchedulingGates) > 0 {
		return false
	}
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !matches {
		return false
	}
	cordoned := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if node.Spec.Unschedulable && !toleratesTaint(pod, &cordoned) {
		return false
	}
	// Ignore the member-away taint, which may remain for a moment after the member is reachable
	// again.
	return !slices.ContainsFunc(UntoleratedTaints(pod, node), func(t corev1.Taint) bool { return t.Key != v1alpha1.TaintMemberAway })
}

// UntoleratedTaints returns the taints of a node that prevent a scheduler from placing the Pod there.
func UntoleratedTaints(pod *corev1.Pod, node *corev1.Node) []corev1.Taint {
	var found []corev1.Taint
	for i := range node.Spec.Taints {
		if taint := &node.Spec.Taints[i]; taint.Effect != corev1.TaintEffectPreferNoSchedule && !toleratesTaint(pod, taint) {
			found = append(found, *taint)
		}
	}
	return found
}

// TolerationYAML returns the toleration for a taint, as one line of YAML.
func TolerationYAML(t corev1.Taint) string {
	if t.Value == "" {
		return fmt.Sprintf("{key: %s, operator: Exists, effect: %s}", t.Key, t.Effect)
	}
	return fmt.Sprintf("{key: %s, operator: Equal, value: %q, effect: %s}", t.Key, t.Value, t.Effect)
}

// PodSelectsNode reports whether the Pod's node selector and required node affinity match a node.
func PodSelectsNode(pod *corev1.Pod, node *corev1.Node) bool {
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	return err == nil && matches
}

// MayRunPods reports whether the scheduler may place all given Pods on the member's virtual node: the
// node is Ready and not cordoned, its member is not away, and the Pods may be scheduled to it. An
// away member's Node may still be Ready, so that its Pods are not evicted.
func (m Member) MayRunPods(pods ...corev1.Pod) bool {
	return m.Node != nil && m.Node.DeletionTimestamp == nil && !m.Node.Spec.Unschedulable && nodes.IsReady(m.Node) && !nodes.MemberAway(m.Node) &&
		!slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !SchedulableOnNode(&pod, m.Node) })
}

func firstUntoleratedTaint(pod *corev1.Pod, node *corev1.Node, effects ...corev1.TaintEffect) (corev1.Taint, bool) {
	for i := range node.Spec.Taints {
		if taint := &node.Spec.Taints[i]; slices.Contains(effects, taint.Effect) && !toleratesTaint(pod, taint) {
			return *taint, true
		}
	}
	return corev1.Taint{}, false
}

func toleratesTaint(pod *corev1.Pod, taint *corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		switch {
		case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
			return false
		case t.Operator == corev1.TolerationOpExists:
			return true
		case t.Operator == corev1.TolerationOpEqual || t.Operator == "":
			return t.Value == taint.Value
		default:
			// The comparison operators (Lt, Gt) need a feature gate that is off by default. A
			// toleration with an unknown operator tolerates nothing.
			return false
		}
	})
}
