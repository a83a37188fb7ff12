package awaymember

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/nodes"
)

// warn reports an outage on a Pod whose Ready condition is not set, and returns when to do so again.
func (r *PodReconciler) warn(o observed, message string) time.Duration {
	due, again := r.news.Due(o.pod.UID, nodes.Condition(o.node, v1alpha1.NodeMemberAway).LastTransitionTime.Unix())
	if due {
		r.eventAway(o.pod, "ReportAway", message)
	}
	return again
}

// eventAway reports that a Pod is not ready because its member is away.
func (r *PodReconciler) eventAway(pod *corev1.Pod, action, message string) {
	r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, v1alpha1.ReasonMemberAway, action, "%s", message)
}
