package awaymember

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
	"github.com/xylem-io/xylem/internal/mirror/report"
	"github.com/xylem-io/xylem/internal/nodes"
)

// observed is the input of decide. A nil field means that the object does not exist.
type observed struct {
	pod *corev1.Pod
	// node is the Node that the Pod is bound to.
	node *corev1.Node
	// memberConnected means that the member is connected, so that its controllers write the Pod's status.
	memberConnected bool
}

// decision is what to report on a Pod.
type decision struct {
	message string // empty if there is nothing to report
	// markNotReady means that the Pod's Ready condition must be set to False. Otherwise, only an event reports
	// the message: leaf_pod would not remove the condition from a Pod that is never pushed.
	markNotReady bool
}

func decideAwayReport(o observed) decision {
	switch {
	case o.pod == nil, o.node == nil, o.memberConnected, podstatus.IsPodFinished(o.pod), o.pod.DeletionTimestamp != nil:
		return decision{}
	case !nodes.IsVirtual(o.node), !nodes.MemberAway(o.node), !lacksAwayReport(o.pod):
		return decision{}
	}
	running := ""
	if isShownReady(o.pod) || podstatus.PushedStatus(o.pod) == corev1.ConditionTrue {
		running = "The Pod may still be running in the member. "
	}
	after := "The Pod is kept until the member is connected again"
	if !nodes.IsReady(o.node) {
		after = "The host evicts the Pod when its tolerations of the node's taints expire"
	}
	away := nodes.FindCondition(o.node, v1alpha1.NodeMemberAway)
	return decision{fmt.Sprintf("member %q has been away since %s: %s. %s%s",
		o.node.Labels[v1alpha1.LabelCluster], away.LastTransitionTime.UTC().Format(time.RFC3339), away.Message, running, after), isShownReady(o.pod)}
}

// lacksAwayReport reports whether a Pod's Ready condition does not show yet that the member is away. Pods
// that Xylem never pushes to a member do not need it.
func lacksAwayReport(pod *corev1.Pod) bool {
	if pushed := report.PodConditionProblem(pod, v1alpha1.PodPushed); pushed != nil && pushed.Reason == v1alpha1.ReasonDaemonSet {
		return isShownReady(pod)
	}
	c := podstatus.FindPodCondition(pod.Status.Conditions, corev1.PodReady)
	return c == nil || isShownReady(pod) || c.Reason != v1alpha1.ReasonMemberAway
}

// isShownReady reports whether a Pod's Ready condition is True, or is False without a reason, as the
// node lifecycle controller sets it.
func isShownReady(pod *corev1.Pod) bool {
	c := podstatus.FindPodCondition(pod.Status.Conditions, corev1.PodReady)
	return c != nil && (c.Status == corev1.ConditionTrue || c.Reason == "")
}
