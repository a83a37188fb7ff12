package leafattachment

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

// eventFailed reports on a claim that the driver fails to attach or to detach its volume.
func (r *reconciler) eventFailed(root *corev1.PersistentVolumeClaim, s *statement) {
	if s.reason == v1alpha1.ReasonAttachFailed || s.reason == v1alpha1.ReasonDetachFailed {
		r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, s.reason, "Attach", "%s", s.message)
	}
}
