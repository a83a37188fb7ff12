package awaymember

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/nodes"
)

// emitAwayWarning reports an outage on a Pod whose Ready condition is not set, and returns when to do so again.
func (r *PodReconciler) emitAwayWarning(o observed, message string) time.Duration {
	due, again := r.news.EventDue(o.pod.UID, nodes.FindCondition(o.node, v1alpha1.NodeMemberAway).LastTransitionTime.Unix())
	if due {
		r.emitMemberAway(o.pod, "ReportAway", message)
	}
	return again
}

// emitMemberAway reports that a Pod is not ready because its member is away.
func (r *PodReconciler) emitMemberAway(pod *corev1.Pod, action, message string) {
	r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, v1alpha1.ReasonMemberAway, action, "%s", message)
}
