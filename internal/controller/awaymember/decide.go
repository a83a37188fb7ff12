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
	// linked means that the member is connected, so that its controllers write the Pod's status.
	linked bool
}

// decision is what to report on a Pod.
type decision struct {
	message string // empty if there is nothing to report
	// mark means that the Pod's Ready condition must be set to False. Otherwise, only an event reports
	// the message: leaf_pod would not remove the condition from a Pod that is never pushed.
	mark bool
}

func decide(o observed) decision {
	switch {
	case o.pod == nil, o.node == nil, o.linked, podstatus.Finished(o.pod), o.pod.DeletionTimestamp != nil:
		return decision{}
	case !nodes.IsVirtual(o.node), !nodes.Away(o.node), !unreported(o.pod):
		return decision{}
	}
	running := ""
	if shownReady(o.pod) || podstatus.Pushed(o.pod) == corev1.ConditionTrue {
		running = "The Pod may still be running in the member. "
	}
	after := "The Pod is kept until the member is connected again"
	if !nodes.IsReady(o.node) {
		after = "The host evicts the Pod when its tolerations of the node's taints expire"
	}
	away := nodes.Condition(o.node, v1alpha1.NodeMemberAway)
	return decision{fmt.Sprintf("member %q has been away since %s: %s. %s%s",
		o.node.Labels[v1alpha1.LabelCluster], away.LastTransitionTime.UTC().Format(time.RFC3339), away.Message, running, after), shownReady(o.pod)}
}

// unreported reports whether a Pod's Ready condition does not show yet that the member is away. Pods
// that Xylem never pushes to a member do not need it.
func unreported(pod *corev1.Pod) bool {
	if pushed := report.PodProblem(pod, v1alpha1.PodPushed); pushed != nil && pushed.Reason == v1alpha1.ReasonDaemonSet {
		return shownReady(pod)
	}
	c := podstatus.Condition(pod.Status.Conditions, corev1.PodReady)
	return c == nil || shownReady(pod) || c.Reason != v1alpha1.ReasonMemberAway
}

// shownReady reports whether a Pod's Ready condition is True, or is False without a reason, as the
// node lifecycle controller sets it.
func shownReady(pod *corev1.Pod) bool {
	c := podstatus.Condition(pod.Status.Conditions, corev1.PodReady)
	return c != nil && (c.Status == corev1.ConditionTrue || c.Reason == "")
}
