package leafpod

import corev1 "k8s.io/api/core/v1"

func (r *reconciler) eventFailed(root *corev1.Pod, reason, message string) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, reason, "Fail", "%s", message)
}
