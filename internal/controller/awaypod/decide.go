package awaypod

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror/podstatus"
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

// decide returns the message of the Ready=False condition to set, or an empty string if none must
// be set.
func decide(o observed) string {
	switch {
	case o.pod == nil, o.node == nil, o.linked, podstatus.Finished(o.pod), o.pod.DeletionTimestamp != nil:
		return ""
	case !nodes.IsVirtual(o.node), !nodes.Away(o.node), !shownReady(o.pod):
		return ""
	}
	away := nodes.Condition(o.node, v1alpha1.NodeMemberAway)
	after := "The Pod is kept until the member is connected again"
	if !nodes.IsReady(o.node) {
		after = "The host evicts the Pod when its tolerations of the node's taints expire"
	}
	return fmt.Sprintf("member %q has been away since %s: %s. The Pod may still be running in the member. %s",
		o.node.Labels[v1alpha1.LabelCluster], away.LastTransitionTime.UTC().Format(time.RFC3339), away.Message, after)
}

// shownReady reports whether a Pod's Ready condition is True, or is False without a reason, as the
// node lifecycle controller sets it.
func shownReady(pod *corev1.Pod) bool {
	c := podstatus.Condition(pod.Status.Conditions, corev1.PodReady)
	return c != nil && (c.Status == corev1.ConditionTrue || c.Reason == "")
}
