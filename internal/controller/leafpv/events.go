package leafpv

import corev1 "k8s.io/api/core/v1"

func (r *reconciler) eventMirrored(root *corev1.PersistentVolumeClaim, host *corev1.PersistentVolume) {
	r.Recorder.Eventf(root, host, corev1.EventTypeNormal, "VolumeMirrored", "Mirror",
		"member %s has made volume %s", r.Registration, host.Name)
}

func (r *reconciler) eventSurplus(root *corev1.PersistentVolumeClaim, leaf *corev1.PersistentVolume, why string) {
	r.Recorder.Eventf(root, nil, corev1.EventTypeWarning, "SurplusVolume", "Mirror",
		"member %s has a volume %s for this claim that is not used: %s. Its data are kept; delete it there if nobody needs it", r.Registration, leaf.Name, why)
}
