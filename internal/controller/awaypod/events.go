package awaypod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// eventAway reports that a Pod is not ready because its member is away.
func (r *Reconciler) eventAway(pod *corev1.Pod, message string) {
	r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, v1alpha1.ReasonMemberAway, "MarkNotReady", "%s", message)
}
