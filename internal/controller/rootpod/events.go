package rootpod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

func (r *reconciler) eventProblem(root *corev1.Pod, problem *mirror.Refusal) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, problem.Reason, "Push", "%s", problem.Message)
}

func (r *reconciler) eventWithdrawn(root *corev1.Pod, why string) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeNormal, v1alpha1.ReasonWithdrawn, "Withdraw", "taken back from member %s: %s", r.Registration, why)
}
