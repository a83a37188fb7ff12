package why

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// resizeFails reports whether a Pod does not get the resources that it requests: its node cannot hold them, or
// the member rejects the resize. An event about the latter may be about an earlier resize.
func resizeFails(n *inspect.Node, pod *corev1.Pod) bool {
	return slices.ContainsFunc(n.Conditions, func(c inspect.Condition) bool { return isFailingResize(&c) }) ||
		pod.Status.ObservedGeneration < pod.Generation && slices.ContainsFunc(n.Events, func(e inspect.Event) bool { return e.Reason == v1alpha1.ReasonNotResized })
}

// isFailingResize reports whether a condition shows a resize that the kubelet has not begun, or cannot finish.
func isFailingResize(c *inspect.Condition) bool {
	return c.Type == string(corev1.PodResizePending) || c.Type == string(corev1.PodResizeInProgress) && c.Reason == corev1.PodReasonError
}

// stageOfEvent returns the stage of a Warning's cause. A Pod that is not resized runs, so that other Warnings matter less.
func stageOfEvent(e *inspect.Event) stage {
	if e.Reason == v1alpha1.ReasonNotResized {
		return stageContainer
	}
	return stageEvent
}
