package waitingpod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror"
)

// emitPodWaits reports on a Pod why it has no node.
func (r *Reconciler) emitPodWaits(pod *corev1.Pod, problem *mirror.Refusal) {
	r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, problem.Reason, "Place", "%s", problem.Message)
}
