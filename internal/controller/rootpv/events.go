package rootpv

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/api/v1alpha1"
)

func (r *reconciler) eventKept(host *corev1.PersistentVolume) {
	r.Recorder.Eventf(host, nil, corev1.EventTypeWarning, v1alpha1.ReasonReleaseRefused, "Release",
		"no Pod uses the volume, and its disk in member %s is kept all the same, since its reclaim policy is Retain here or there", r.Registration)
}

// once emits an event on a host PV, if this process has not emitted it yet.
func (r *reconciler) once(host *corev1.PersistentVolume, reason string, emit func()) {
	key := string(host.UID) + "/" + reason
	if _, emitted := r.kept.Get(key); !emitted {
		r.kept.Add(key, true)
		emit()
	}
}

func (r *reconciler) eventUnsupported(o observed) {
	r.Recorder.Eventf(o.host, nil, corev1.EventTypeWarning, v1alpha1.ReasonReclaimPolicyUnsupported, "Release",
		"Xylem keeps leaf volume %q in member %q: it does not support reclaim policy %q. Set persistentVolumeReclaimPolicy to Delete to destroy the data, or to Retain to keep them",
		o.leafName, r.Registration, o.host.Spec.PersistentVolumeReclaimPolicy)
}

// eventReleased tells of a disk that went with its last Pod.
func (r *reconciler) eventReleased(o observed, claim *corev1.PersistentVolumeClaim) {
	if claim == nil {
		return
	}
	r.Recorder.Eventf(claim, o.host, corev1.EventTypeNormal, v1alpha1.ReasonVolumeReleased, "Release",
		"volume %s in member %s is destroyed, since no Pod uses the claim: the next one has another made", o.leafName, r.Registration)
}
