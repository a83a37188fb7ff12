package promise

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func (r *Reconciler) eventBroken(claim *corev1.PersistentVolumeClaim, message string) {
	r.Recorder.Eventf(claim, nil, corev1.EventTypeWarning, v1alpha1.ReasonPromiseBroken, "Promise", "%s", message)
}
